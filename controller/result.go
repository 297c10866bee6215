// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"time"
)

// Result says how an attempt ended when there was no error. Results are
// comparable values.
//
// The zero Result makes no statement. From Reconcile it counts as Done. From the
// function of a finalizer it means that the cleanup is not finished: only Done
// lets the object go.
type Result struct {
	kind  resultKind
	after time.Duration
}

type resultKind uint8

const (
	resultUnsaid resultKind = iota
	resultDone
	resultAfter
	resultWait
	resultRetry
)

// Done: there is nothing to do until something changes. What the controller writes
// itself, the status of this attempt, finalizers and inventories, is no such
// change: to be called again after a step was noted in the status, return After(0).
func Done() Result { return Result{kind: resultDone} }

// After: done for now, come back after d at the latest; at once when d is not
// positive. An event that comes before settles it.
func After(d time.Duration) Result { return Result{kind: resultAfter, after: max(d, 0)} }

// Wait: not finished, an event will tell when to go on; see Done for what is none. The status of the
// attempt is written, but not its observed generation.
func Wait() Result { return Result{kind: resultWait} }

// Retry: not finished, come back with the back-off of failures, although nothing
// went wrong. The status of the attempt is written, but not its observed
// generation.
func Retry() Result { return Result{kind: resultRetry} }

// Delay returns when After comes back, and whether it does.
func (r Result) Delay() (time.Duration, bool) { return r.after, r.kind == resultAfter }

// String names the constructor.
func (r Result) String() string {
	switch r.kind {
	case resultDone:
		return "Done()"
	case resultAfter:
		return fmt.Sprintf("After(%v)", r.after)
	case resultWait:
		return "Wait()"
	case resultRetry:
		return "Retry()"
	}
	return "Result{}"
}

// finished tells that a reconcile did all there was to do.
func (r Result) finished() bool {
	return r.kind == resultUnsaid || r.kind == resultDone || r.kind == resultAfter
}
