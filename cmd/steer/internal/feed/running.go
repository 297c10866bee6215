// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/steer-dev/steer/trace"
)

// readRunning reads the reconciles that have not ended.
func (f *Feed) readRunning(body io.Reader) error {
	var now []trace.Record
	err := decode(body, func(r trace.Record) { now = append(now, r) })
	if !errors.Is(err, io.EOF) {
		return err
	}
	f.mu.Lock()
	moved := len(now)+len(f.running) > 0 // their times are others
	f.running = now
	f.mu.Unlock()
	if moved {
		f.changed()
	}
	return nil
}

// Now are the attempts that have not ended, and what waits in the queues.
func (f *Feed) Now() (running []trace.Record, queued []trace.Queued) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]trace.Record{}, f.running...), f.queued
}

// long is how long a reconcile runs until it is shown.
const long = time.Second

// Running are the reconciles that have run for longer than most do, with where they are.
func (f *Feed) Running() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.running {
		if r.Took < long {
			continue
		}
		line := fmt.Sprintf("%s: running for %s", of(&r), r.Took.Round(time.Second))
		if where := r.Where(); where != "" {
			line += " at " + where
		}
		lines = append(lines, line)
	}
	return lines
}
