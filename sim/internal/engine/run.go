// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/sim/internal/plan"
)

// Limits of a run. The zero value is the usual ones.
type Limits struct {
	// SameWrite is how often one write may be effective at one instant. Default 100.
	SameWrite int
	// Writes is how many there may be. Default 20,000.
	Writes int
	// Settle is how long, in virtual time, it may take after the end of the test until
	// nothing is left to do. Default 10 minutes.
	Settle time.Duration
	// Linger is how long, in virtual time, it goes on after the end of the test: what faults
	// have delayed is made up for. Default 37 seconds: those who act by the minute are not
	// met at the same instant.
	Linger time.Duration
	// Log has the record tell all that has passed the gate.
	Log bool
	// Passed, if set, grows as the run goes on; see gate.Gate.Count.
	Passed *atomic.Int64 `json:"-"`
}

func (l Limits) withDefaults() Limits {
	l.SameWrite = cmp.Or(l.SameWrite, 100)
	l.Writes = cmp.Or(l.Writes, 20000)
	l.Settle = cmp.Or(l.Settle, 10*time.Minute)
	l.Linger = cmp.Or(l.Linger, 37*time.Second)
	return l
}

// Run runs f once as a plan says, in a bubble of its own. t is that of a worker: it fails
// when the run does. After trouble of type [Left] the process has goroutines that do not
// end.
func Run(t *testing.T, f func(t *testing.T), p plan.Plan, limits Limits) Record {
	e := newEngine(p, limits)
	ended := make(chan any)
	go func() { // a goroutine of its own: a test that fails ends it
		defer func() { ended <- recover() }()
		synctest.Test(t, func(t *testing.T) {
			release := driven.Drive(t, e)
			t.Cleanup(func() { // the last one
				release()
				e.close(t.Skipped(), t.Failed())
			})
			defer func() { e.finish(t.Failed() || t.Skipped()) }()
			f(t)
		})
	}()
	if trouble := <-ended; trouble != nil {
		e.trouble(Left, fmt.Sprint(trouble))
	}
	return e.record
}
