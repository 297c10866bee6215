// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrNotWatchable: the sources were found by the go command, which does not say
// what it looked at.
var ErrNotWatchable = errors.New("generate: changes cannot be watched with this loader")

// Wait blocks until something that the run read changes, also while it ran, or the context
// ends. It looks at the times and sizes of files, a few hundred per second at most.
func (r *Result) Wait(ctx context.Context, every time.Duration) error {
	if r.inputs == nil {
		return ErrNotWatchable
	}
	before := r.stamp()
	if r.outdated() {
		return nil
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if r.stamp() != before {
				return nil
			}
		}
	}
}

// stamp sums up the state of the inputs. Directories count by their names, so that
// writing outputs beside sources is no change.
func (r *Result) stamp() string {
	var stamp string
	for _, dir := range r.dirs {
		stamp += dirSum(dir)
	}
	for _, path := range r.inputs {
		if info, err := os.Stat(path); err == nil {
			stamp += fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
		stamp += ";"
	}
	return stamp
}
