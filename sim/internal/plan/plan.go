// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan says what goes wrong in one run of a simulation: which faults happen at
// which writes, and in which order actors go on when several could.
//
// A [Plan] is a value that names writes by what they are, never by when they come, so that
// it means the same in another process and, while the operator still makes these writes,
// after a change of the operator. Its [Plan.Name] is the name of a subtest and of a file;
// [Encode] and [Decode] are the text of that file. [Enumerate] lists the plans that the
// writes of a run without faults give.
//
// The package is pure: nothing here runs, waits or opens anything.
package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Limits of a plan. What is beyond them is refused.
const (
	MaxFaults = 64
	maxValue  = 1024 // bytes of one part of the name of a write
)

// Operator is the actor whose writes [Enumerate] puts faults at.
const Operator = "operator"

// Outside is the verb of a write to a system outside of the API server. Its Name says in
// a few words what it is; it has no kind.
const Outside = "outside"

// Verbs are the verbs of writes. Apply is a verb of its own here.
func Verbs() []string {
	return []string{"create", "update", "patch", "apply", "delete", "deletecollection", Outside}
}

// Write names one write of a run: what is written, and which of those that are the same it
// is.
type Write struct {
	// Actor made it. Empty is [Operator]; [Counter], [Enumerate] and [Decode] write it out,
	// so that their writes can be compared.
	Actor string
	// Verb is one of [Verbs].
	Verb string
	// Group and Kind of the object; the core group is empty.
	Group, Kind string
	// Namespace and Name of the object, as [Names] gives them: in another run they are the
	// same. A deletion of a collection has no name.
	Namespace, Name string
	// SubResource, such as "status", or empty.
	SubResource string
	// Nth counts the writes that are the same in all other fields, from 1, over the whole
	// run: attempts that failed and other incarnations of the operator count.
	Nth int
}

// String returns the write in one line, such as "patch Database.example.com/status
// default/db, the 2nd time".
func (w Write) String() string {
	s := w.Verb
	if w.Actor != "" && w.Actor != Operator {
		s = w.Actor + ": " + s
	}
	if w.Kind != "" {
		s += " " + w.kind("/")
	}
	if name := w.key(); name != "" {
		s += " " + name
	}
	if w.Nth > 1 {
		s += ", the " + ordinal(w.Nth) + " time"
	}
	return s
}

func (w Write) kind(sep string) string {
	s := w.Kind
	if w.Group != "" {
		s += "." + w.Group
	}
	if w.SubResource != "" {
		s += sep + w.SubResource
	}
	return s
}

func (w Write) key() string {
	if w.Namespace == "" {
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

func (w Write) validate() error {
	switch {
	case !slices.Contains(Verbs(), w.Verb):
		return fmt.Errorf("the verb %q is none of %q", w.Verb, Verbs())
	case w.Verb == Outside && (w.Kind != "" || w.Group != "" || w.SubResource != "" || w.Namespace != ""):
		return errors.New("a write to the outside has a name and nothing else")
	case w.Verb != Outside && w.Kind == "":
		return errors.New("the write names no kind")
	case w.Verb == "deletecollection" && w.Name != "":
		return errors.New("the deletion of a collection has no name")
	case w.Verb != "deletecollection" && w.Name == "":
		return errors.New("the write names no object")
	case w.Nth < 1:
		return errors.New("occurrences of a write count from 1")
	}
	for _, s := range []string{w.Actor, w.Group, w.Kind, w.Namespace, w.Name, w.SubResource} {
		if len(s) > maxValue {
			return fmt.Errorf("a part of the name of the write has %d bytes, at most %d", len(s), maxValue)
		}
	}
	return nil
}

// FaultType is what happens at a write.
type FaultType uint8

// The types of faults. What the operator writes after a crash reaches no server until it is
// started again.
const (
	// CrashBefore ends the process before the write is done.
	CrashBefore FaultType = iota + 1
	// CrashAfter ends it once the write is done and answered.
	CrashAfter
	// CrashDuring ends it once the write is done: its answer is lost.
	CrashDuring
	// Conflict answers 409; the write is not done.
	Conflict
	// TooManyRequests answers 429; the write is not done.
	TooManyRequests
	// InternalError answers 500; the write is not done.
	InternalError
	// TimeoutBefore answers 504; the write is not done.
	TimeoutBefore
	// TimeoutAfter answers 504; the write is done.
	TimeoutAfter
)

// FaultTypes are all of them.
func FaultTypes() []FaultType {
	return []FaultType{
		CrashBefore, CrashAfter, CrashDuring, Conflict, TooManyRequests, InternalError, TimeoutBefore, TimeoutAfter,
	}
}

// String returns the word that names and files of plans have, such as "crash_after".
func (t FaultType) String() string {
	switch t {
	case CrashBefore:
		return "crash_before"
	case CrashAfter:
		return "crash_after"
	case CrashDuring:
		return "crash_during"
	case Conflict:
		return "409_on"
	case TooManyRequests:
		return "429_on"
	case InternalError:
		return "500_on"
	case TimeoutBefore:
		return "504_before"
	case TimeoutAfter:
		return "504_after"
	}
	return "FaultType(" + strconv.Itoa(int(t)) + ")"
}

func (t FaultType) valid() bool { return t >= CrashBefore && t <= TimeoutAfter }

// Crashes reports whether the fault ends the process of the operator.
func (t FaultType) Crashes() bool { return t >= CrashBefore && t <= CrashDuring }

// Commits reports whether the write of the fault is done.
func (t FaultType) Commits() bool { return t == CrashAfter || t == CrashDuring || t == TimeoutAfter }

// Status is the HTTP status that the operator gets, 0 after a crash.
func (t FaultType) Status() int {
	switch t {
	case Conflict:
		return 409
	case TooManyRequests:
		return 429
	case InternalError:
		return 500
	case TimeoutBefore, TimeoutAfter:
		return 504
	}
	return 0
}

// Fault is one thing that goes wrong.
type Fault struct {
	Type FaultType
	// At is the write of the fault, unless Restart is set.
	At Write
	// Restart, if positive, is the number, from 1, of an effective write of the process
	// that was started after the crash before this fault in the plan: which write that is
	// cannot be known before the run.
	Restart int
}

// String returns the fault in one line, such as "crash after create Secret default/db".
func (f Fault) String() string {
	what := spaced(f.Type.String())
	if f.Restart > 0 {
		return what + " the " + ordinal(f.Restart) + " write after the restart"
	}
	return what + " " + f.At.String()
}

// Plan is what goes wrong in a run. The zero value is the reference: nothing does.
type Plan struct {
	// Seed decides the order in which actors go on; 0 is the order of the reference.
	Seed uint64
	// Faults in the order in which they happen. Each happens once.
	Faults []Fault
}

// Validate returns why there can be no run of the plan.
func (p Plan) Validate() error {
	if len(p.Faults) > MaxFaults {
		return fmt.Errorf("plan: %d faults, at most %d", len(p.Faults), MaxFaults)
	}
	crashed := false
	at := map[Write]bool{}
	for i, f := range p.Faults {
		var err error
		switch {
		case !f.Type.valid():
			err = errors.New("the fault has no type")
		case f.Restart < 0:
			err = errors.New("writes of a restart count from 1")
		case f.Restart > 0 && f.At != (Write{}):
			err = errors.New("the fault is at a write by name or at one of the restart, not both")
		case f.Restart > 0 && !crashed:
			err = errors.New("the fault is at a write of a restart, and no crash comes before it")
		case f.Restart == 0:
			if err = f.At.validate(); err == nil && at[f.At.normal()] {
				err = errors.New("two faults are at the same write")
			}
			at[f.At.normal()] = true
		}
		if err != nil {
			return fmt.Errorf("plan: fault %d: %w", i+1, err)
		}
		crashed = crashed || f.Type.Crashes()
	}
	return nil
}

// normal returns w with the actor's name written out.
func (w Write) normal() Write {
	if w.Actor == "" {
		w.Actor = Operator
	}
	return w
}

// Counter numbers the writes of one run. It is for one goroutine.
type Counter struct{ seen map[Write]int }

// Next returns w with its Nth.
func (c *Counter) Next(w Write) Write {
	if c.seen == nil {
		c.seen = map[Write]int{}
	}
	w = w.normal()
	w.Nth = 0
	c.seen[w]++
	w.Nth = c.seen[w]
	return w
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
