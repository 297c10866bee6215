// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"sync"
	"testing"

	"github.com/steer-dev/steer/cmd/steer/internal/screen"
)

// TestLogOfTheScreenKeepsEveryLine of writers that do not wait for each other: the command
// itself, the streams of the operator and the API server beside it.
func TestLogOfTheScreenKeepsEveryLine(t *testing.T) {
	t.Parallel()
	const writers, each = 4, keptLines / 4
	v, err := newLive(screen.Screen{})
	if err != nil {
		t.Fatal(err)
	}
	log := v.log()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				fmt.Fprintf(log, "line %d of writer %d\n", i, w)
			}
		})
	}
	all.Wait()
	seen := map[string]int{}
	for _, line := range v.snapshot().Log {
		seen[line]++
	}
	for w := range writers {
		for i := range each {
			if line := fmt.Sprintf("line %d of writer %d", i, w); seen[line] != 1 {
				t.Fatalf("%q is there %d times, want once", line, seen[line])
			}
		}
	}
}
