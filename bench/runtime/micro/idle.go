// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Idle starts a manager with one controller of one object, lets it come to rest
// and says what it holds: goroutines, and memory that is resident.
func Idle(ctx context.Context, run func(ctx context.Context, config *rest.Config, seen func(string)) error) (Result, error) {
	server, err := newCanned(custom, 1, true)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, ended := make(chan struct{}, 16), make(chan error, 1)
	go func() { ended <- run(ctx, config(server), func(string) { seen <- struct{}{} }) }()
	select {
	case <-seen:
	case err := <-ended:
		return nil, fmt.Errorf("the manager ended: %w", err)
	}
	time.Sleep(time.Second) // what the start has left behind ends
	debug.FreeOSMemory()
	resident, err := Resident("VmRSS:")
	return Result{"idle goroutines": float64(runtime.NumGoroutine()), "idle resident": resident / 1e6}, err
}

// Resident reads a line of the memory of this process, in bytes; 0 where the
// system does not tell.
func Resident(line string) (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, nil //nolint:nilerr // not a Linux
	}
	for text := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(text, line); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes * 1024, err
		}
	}
	return 0, nil
}
