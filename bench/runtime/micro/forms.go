// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// Forms are the ways in which a cache can hold a kind, by which [Sync] knows them.
func Forms() []string { return []string{custom.String(), untyped.String(), metadata.String()} }

// Sync measures the first sync of so many small objects in one of the [Forms]: "CPU"
// in µs and "heap" in bytes, of one object each, and "peak", by how many bytes the
// process is larger at most. It is for a process of its own, whose peak it resets.
func Sync(ctx context.Context, side Side, process func() time.Duration, as string, objects int) (Result, error) {
	f := custom
	for f.String() != as {
		if f++; f > metadata {
			return nil, fmt.Errorf("no form %q; there are %q", as, Forms())
		}
	}
	server, err := newCanned(f, objects, true)
	if err != nil {
		return nil, err
	}
	before := liveHeap()
	debug.FreeOSMemory()
	if err := resetPeak(); err != nil {
		return nil, err
	}
	resting, err := Resident("VmRSS:")
	if err != nil {
		return nil, err
	}
	m := &measurement{process: process}
	var reads Reads
	s, err := m.spend(func() (err error) {
		reads, err = side.Cache(ctx, config(server), f.blank(), 0, func() {})
		return err
	})
	if err != nil {
		return nil, err
	}
	peak, err := Resident("VmHWM:")
	if err != nil {
		return nil, err
	}
	out := Result{
		"CPU":  float64(s.cpu.Nanoseconds()) / float64(objects) / 1000,
		"heap": (liveHeap() - before) / float64(objects),
		"peak": peak - resting,
	}
	runtime.KeepAlive(server)
	runtime.KeepAlive(reads)
	return out, nil
}

// resetPeak makes the kernel forget how large the process was.
func resetPeak() error {
	const resetPeakResident = "5"
	err := os.WriteFile("/proc/self/clear_refs", []byte(resetPeakResident), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not a Linux
	}
	return err
}
