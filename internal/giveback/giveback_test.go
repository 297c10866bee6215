// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"context"
	"slices"
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

// told is what followLoad said, and when.
type told struct {
	at  time.Duration
	one bool
}

// follow plays a load, as a share of one processor at a time, for a while.
func follow(t *testing.T, length time.Duration, share func(at time.Duration) float64, heap func(at time.Duration) uint64) (out []told) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		begun := time.Now()
		var used, counted time.Duration
		followLoad(ctx, func() time.Duration {
			for ; counted < time.Since(begun); counted += time.Millisecond {
				used += time.Duration(share(counted) * float64(time.Millisecond))
			}
			return used
		}, func() uint64 { return heap(time.Since(begun)) }, func(one bool) { out = append(out, told{time.Since(begun), one}) })
	})
	return out
}

func TestProcessorsFollowTheLoad(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, test := range map[string]struct {
		share func(at time.Duration) float64
		want  []told
	}{
		"rest":         {func(time.Duration) float64 { return 0.001 }, []told{{200 * time.Millisecond, true}}},
		"work for one": {func(time.Duration) float64 { return 0.3 }, []told{{200 * time.Millisecond, true}}},
		"work for all": {func(time.Duration) float64 { return 2 }, nil},
		"between the bounds, from more": {func(at time.Duration) float64 {
			if at < second {
				return 1.5
			}
			return 0.6
		}, nil},
		"a burst out of work for one": {func(at time.Duration) float64 {
			if at >= second && at < 2*second {
				return 0.9
			}
			return 0.2
		}, []told{{200 * time.Millisecond, true}, {second + 50*time.Millisecond, false}, {2*second + 200*time.Millisecond, true}}},
		"a burst out of rest": {func(at time.Duration) float64 {
			if at >= second && at < 2*second {
				return 1
			}
			return 0
		}, []told{{200 * time.Millisecond, true}, {1100 * time.Millisecond, false}, {2200 * time.Millisecond, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small := func(time.Duration) uint64 { return 10 << 20 }
			if got := follow(t, 3*second, test.share, small); !slices.Equal(got, test.want) {
				t.Errorf("told %v, want %v", got, test.want)
			}
		})
	}
}

func TestALargeHeapKeepsAllProcessors(t *testing.T) {
	t.Parallel()
	rest := func(time.Duration) float64 { return 0.1 }
	got := follow(t, 3*time.Second, rest, func(at time.Duration) uint64 {
		if at >= time.Second && at < 2*time.Second {
			return heavy
		}
		return heavy - 1
	})
	want := []told{{200 * time.Millisecond, true}, {time.Second, false}, {2*time.Second + 150*time.Millisecond, true}}
	if !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}
