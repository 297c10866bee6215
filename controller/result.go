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
// The zero Result is Done.
type Result struct {
	kind  resultKind
	after time.Duration
	at    time.Time
}

type resultKind uint8

const (
	resultDone resultKind = iota
	resultAfter
	resultWait
	resultWaitUntil
	resultRetry
)

// Done: there is nothing to do until something changes. What the controller writes
// itself, the status of this attempt, finalizers and inventories, is no such
// change: to be called again after a step was noted in the status, return After(0).
func Done() Result { return Result{} }

// After: done for now, come back after d at the latest; at once when d is not
// positive. An event that comes before settles it. The observed generation is
// written, by which kstatus, and so Argo CD and Flux, take the object for finished: a
// step that is not over returns [WaitUntil].
func After(d time.Duration) Result { return Result{kind: resultAfter, after: max(d, 0)} }

// Wait: not finished, an event will tell when to go on; see Done for what is none. The status of the
// attempt is written, but not its observed generation.
func Wait() Result { return Result{kind: resultWait} }

// WaitUntil: not finished, come back at t, or at once when t is past; for a step that
// takes its time, such as the pause between two steps of a rollout. The status of the
// attempt is written, but not its observed generation. Events, those of children too,
// come before t as ever: take t from the status, as the time of the step's begin and its
// length, and not from now, so that an attempt in between changes nothing.
func WaitUntil(t time.Time) Result { return Result{kind: resultWaitUntil, at: t} }

// Retry: not finished, come back with the back-off of failures, although nothing
// went wrong. The status of the attempt is written, but not its observed
// generation.
func Retry() Result { return Result{kind: resultRetry} }

// Delay returns in how long After and WaitUntil come back, and whether they do.
func (r Result) Delay() (time.Duration, bool) {
	if r.kind == resultWaitUntil {
		return max(time.Until(r.at), 0), true
	}
	return r.after, r.kind == resultAfter
}

// String names the constructor.
func (r Result) String() string {
	switch r.kind {
	case resultAfter:
		return fmt.Sprintf("After(%v)", r.after)
	case resultWait:
		return "Wait()"
	case resultWaitUntil:
		return fmt.Sprintf("WaitUntil(%s)", r.at.Format(time.RFC3339))
	case resultRetry:
		return "Retry()"
	}
	return "Done()"
}

// finished reports whether a reconcile did all there was to do.
func (r Result) finished() bool { return r.kind == resultDone || r.kind == resultAfter }

// FinalizerResult says how far the cleanup of a finalizer is when there was no
// error. Values are comparable.
//
// The zero FinalizerResult means that the cleanup is not finished: the function of
// the finalizer is called again after the next event. Only [Finalized] removes the
// finalizer.
type FinalizerResult struct {
	finalized bool
	next      Result // of a cleanup that is not finished, when it is not the next event
}

// Finalized: the cleanup is finished; the finalizer is removed from the object.
func Finalized() FinalizerResult { return FinalizerResult{finalized: true} }

// FinalizeAfter: the cleanup is not finished; its function is called again after d at
// the latest, and at once when d is not positive.
func FinalizeAfter(d time.Duration) FinalizerResult { return FinalizerResult{next: After(d)} }

// FinalizeRetry: the cleanup is not finished; its function is called again with the
// back-off of failures.
func FinalizeRetry() FinalizerResult { return FinalizerResult{next: Retry()} }

// Done reports whether the cleanup is finished.
func (r FinalizerResult) Done() bool { return r.finalized }

// String names the constructor.
func (r FinalizerResult) String() string {
	switch {
	case r.finalized:
		return "Finalized()"
	case r.next.kind == resultAfter:
		return fmt.Sprintf("FinalizeAfter(%v)", r.next.after)
	case r.next.kind == resultRetry:
		return "FinalizeRetry()"
	}
	return "FinalizerResult{}"
}
