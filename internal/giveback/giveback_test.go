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

func TestARestIsOneThatFollowsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		used := func() time.Duration { // a little always, and much from the twentieth second to the thirtieth
			at := time.Since(begun)
			return at/1000 + max(0, min(at-20*time.Second, 10*time.Second))/2
		}
		if !hasWorked(t.Context(), used) || !isQuiet(t.Context(), used) {
			t.Error("a program that worked does not rest")
		}
		if took := time.Since(begun); took != 32*time.Second {
			t.Errorf("it rests after %v, want 32s: two seconds after the work", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if hasWorked(ctx, used) {
			t.Error("a program that does next to nothing has worked")
		}
	})
}
