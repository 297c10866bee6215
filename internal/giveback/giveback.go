// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package giveback returns to the system what a program does not need for now: what
// its start needed and its rest does not ([WhenQuiet], [AtRests]), and processors
// ([Processors]). It is for programs: a library has no business with the process that
// it is in.
//
// A Go program at rest has a few megabytes of heap and stacks. Most of what is
// resident beside them are pages of its executable that its start touched:
// initialisation, flags, TLS, the first lists. [Now] collects garbage, returns the
// free part of the heap, and on Linux takes the pages of the executable out of the
// page table. What runs afterwards finds its pages again in the page cache, by
// one minor fault for 64 KB, without I/O.
//
// What that is good for: resident memory, which is what process_resident_memory_bytes,
// ps and top show and what the kernel goes by when it must kill a process, then says
// what the program uses, not what it once used. And what it is not: the pages stay
// in the page cache, charged to the control group that read them first, until the
// kernel needs the room; it could have taken them without being told, only later.
// A machine has no more free memory because of it. For the same reason
// MADV_PAGEOUT is not used: it would drop the pages from the cache as well, for
// every process that runs this executable, and what is needed again would have to
// be read from disk.
//
// It is a package of few lines because the front door of operators and the command
// line need the same and neither may import the other's half.
package giveback

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// moment is what a program is watched for at a time.
	moment = time.Second
	// quiet is the CPU time below which a moment was one of rest.
	quiet = 10 * time.Millisecond
	// moments of rest in a row are the end of the start.
	moments = 2
	// glance is how often a program that rests is looked at, and worth the CPU time
	// after which its next rest is one to use.
	glance = 2 * time.Second
	worth  = time.Second
)

// WhenQuiet waits until the program has used next to no CPU time for two seconds,
// which is when its start is over, and then does what [Now] does. It waits for as
// long as the program is busy, since one that always is has nothing to give back.
// When ctx ends first it does nothing and returns false.
func WhenQuiet(ctx context.Context) bool {
	if !isQuiet(ctx, cpuTime) {
		return false
	}
	Now()
	return true
}

// AtRests does what [WhenQuiet] does, and then, until ctx ends, returns the free part of
// the heap at each rest that follows a second of work. It is for servers: after the
// start they rest between bursts, whose garbage would stay resident. The pages of the
// executable are those that the work needs by then, and stay.
func AtRests(ctx context.Context) {
	if !WhenQuiet(ctx) {
		return
	}
	for hasWorked(ctx, cpuTime) && isQuiet(ctx, cpuTime) {
		debug.FreeOSMemory()
	}
}

// hasWorked waits until there was some work and returns false when ctx ended first.
func hasWorked(ctx context.Context, cpuTime func() time.Duration) bool {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for before := cpuTime(); cpuTime()-before < worth; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// isQuiet waits for moments of rest and returns false when ctx ended first.
func isQuiet(ctx context.Context, cpuTime func() time.Duration) bool {
	tick := time.NewTicker(moment)
	defer tick.Stop()
	for before, rested := cpuTime(), 0; rested < moments; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		now := cpuTime()
		if rested++; now-before > quiet {
			rested = 0
		}
		before = now
	}
	return true
}

// Now collects garbage and returns to the system the free memory of the heap and,
// on Linux, the pages of the executable. It takes some milliseconds.
func Now() {
	debug.FreeOSMemory()
	// Where the system does not tell, nothing is given back.
	_ = unmapExecutable()
}
