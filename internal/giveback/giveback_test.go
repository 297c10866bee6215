// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStartIsOverWhenTheProgramIsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		busy := func() time.Duration { // for 5 s, and again in the seventh
			at := time.Since(begun)
			used := min(at, 5*time.Second) / 10
			if at > 6*time.Second {
				used += time.Second
			}
			return used + at/1000
		}
		if !isQuiet(t.Context(), busy) {
			t.Error("a program that rests is not quiet")
		}
		if took := time.Since(begun); took != 9*time.Second {
			t.Errorf("the start was over after %v, want 9s: two seconds after the last work", took)
		}
	})
}

func TestABusyProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		if isQuiet(ctx, func() time.Duration { return time.Since(begun) / 10 }) {
			t.Error("a program that works is quiet")
		}
	})
}
