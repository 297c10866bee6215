// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/trace"

	exptrace "golang.org/x/exp/trace"
)

// wakeups counts how often a goroutine that waits is woken while fn runs, as the
// execution trace has it: each of them, nothing sampled.
func wakeups(fn func()) (int, error) {
	// A collection wakes its workers: none may run meanwhile.
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var recorded bytes.Buffer
	if err := trace.Start(&recorded); err != nil {
		return 0, fmt.Errorf("start the execution trace: %w", err)
	}
	fn()
	trace.Stop()
	reader, err := exptrace.NewReader(&recorded)
	if err != nil {
		return 0, fmt.Errorf("read the execution trace: %w", err)
	}
	for n := 0; ; {
		event, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read the execution trace: %w", err)
		}
		if event.Kind() != exptrace.EventStateTransition {
			continue
		}
		if change := event.StateTransition(); change.Resource.Kind == exptrace.ResourceGoroutine {
			if from, to := change.Goroutine(); from == exptrace.GoWaiting && to == exptrace.GoRunnable {
				n++
			}
		}
	}
}
