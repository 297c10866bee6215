// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

// How [Processors] looks at the load. What is compared with these shares is the CPU time
// of the whole process per second, so that 1 is one processor that is never idle.
const (
	// look is how long a look takes while there is something to do, and doze while there
	// is not, which is when less than slight was used.
	look   = 50 * time.Millisecond
	doze   = 100 * time.Millisecond
	slight = 0.01
	// From busy on, one processor is not enough. So many looks in a row below light, and
	// it is again.
	busy  = 0.75
	light = 0.5
	looks = 4
	// heavy is the live heap, in bytes, from which on one processor is never enough: it
	// would take the collector some 30 ms at a time, in which everything else waits.
	heavy = 100 << 20
)

// Processors lets the program run on one processor (GOMAXPROCS) for as long as it needs
// no more, and on all of them otherwise, until ctx ends. It is for servers that are woken
// often for a little work each time. With more than one, the runtime wakes a second
// thread whenever a goroutine becomes runnable, in case that there is work for two; that
// thread finds nothing, or takes the work to a processor whose caches do not have it.
// A write that comes alone costs a quarter less without it
// (docs/designs/2026-11-22-http2.md).
//
// A program that gets busy has all its processors after 50 ms, one that was at rest
// after 100 ms, and one with a large heap always. It does nothing where there is only
// one processor, or where the environment says how many to use.
func Processors(ctx context.Context) {
	if _, told := os.LookupEnv("GOMAXPROCS"); told || runtime.GOMAXPROCS(0) < 2 {
		return
	}
	defer runtime.SetDefaultGOMAXPROCS()
	followLoad(ctx, cpuTime, liveHeap, func(one bool) {
		if one {
			runtime.GOMAXPROCS(1)
		} else {
			runtime.SetDefaultGOMAXPROCS()
		}
	})
}

// liveHeap is what the collector found alive when it last ran.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// followLoad tells set when one processor becomes enough, and when it no longer is.
func followLoad(ctx context.Context, cpuTime func() time.Duration, heap func() uint64, set func(one bool)) {
	timer := time.NewTimer(look)
	defer timer.Stop()
	one, calm := false, 0
	for before, at := cpuTime(), time.Now(); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		used, now := cpuTime(), time.Now()
		share := float64(used-before) / float64(now.Sub(at))
		before, at = used, now
		large := heap() >= heavy
		if calm++; share >= light || large {
			calm = 0
		}
		switch {
		case one && (share >= busy || large):
			one = false
			set(one)
		case !one && calm >= looks:
			one = true
			set(one)
		}
		if one && share < slight {
			timer.Reset(doze)
		} else {
			timer.Reset(look)
		}
	}
}
