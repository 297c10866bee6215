// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/sim/internal/plan"
)

// Record is what one run was like. It is sent between processes as JSON.
type Record struct {
	// Steps is how many have passed the gate, and Digest is one of all of them: runs with
	// the same digest were the same.
	Steps  int
	Digest uint64
	// Log is what has passed the gate, where it was asked for.
	Log []string `json:",omitempty"`
	// Writes of the operator and the user at which faults may be put, as they were sent.
	Writes []Write `json:",omitempty"`
	// Lives of the objects that were created, changed or deleted.
	Lives []Life `json:",omitempty"`
	// OperatorLog is the end of the operator's log.
	OperatorLog []string `json:",omitempty"`
	// Met is how many faults of the plan have happened.
	Met int
	// Starts is how often the operator was started: 0 for a test without one.
	Starts int
	// Env reports whether the test made an environment with the testing.T that it was given.
	Env bool
	// Skipped and Failed are what the test says of itself.
	Skipped, Failed bool
	// Trouble is what the engine says of the run; nil if it went well.
	Trouble *Trouble `json:",omitempty"`
}

// Write is one write at which faults may be put.
type Write struct {
	plan.Seen
	// At is the virtual time since the beginning, and Status that of the answer that the
	// actor got; 0 for none.
	At     string
	Status int
	// Fault that happened at it, such as "crash_after".
	Fault string `json:",omitempty"`
	// Start of the operator that wrote; 0 for a user.
	Start int
}

// Life is one incarnation of an object.
type Life struct {
	Object               *unstructured.Unstructured
	Created, Deleted     uint64
	CreatedBy, DeletedBy string
}

// The types of trouble.
const (
	// NeverSettles is an operator that writes without end.
	NeverSettles = "never settles"
	// Stuck is a goroutine that blocks on something that the bubble cannot see, or computes
	// without end.
	Stuck = "stuck"
	// Left is what did not end with the test: goroutines, or a deadlock.
	Left = "goroutines are left"
	// Died is a process that ended: a panic outside of Reconcile, os.Exit.
	Died = "the process died"
	// Broken is a fault of the engine, or of what it was given.
	Broken = "the run is broken"
)

// Trouble is what ended a run early, or is wrong with it whatever the test says.
type Trouble struct {
	Type    string
	Message string
}
