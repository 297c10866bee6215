// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "time"

// Queued is what waits in the queue of a controller at a moment: how many requests in all,
// and the first of them in the order in which they run.
type Queued struct {
	Controller string `json:"controller"`
	// Ready wait for a worker, or for the end of an attempt of the same object. BackingOff
	// are tried again after a pause. Due asked to come back, or were asked for with a delay.
	Ready      []Waiting `json:"ready,omitempty"`
	BackingOff []Waiting `json:"backingOff,omitempty"`
	Due        []Waiting `json:"due,omitempty"`

	AllReady      int `json:"allReady,omitempty"`
	AllBackingOff int `json:"allBackingOff,omitempty"`
	AllDue        int `json:"allDue,omitempty"`
}

// Waiting is a request that waits, named as in the records of its attempts.
type Waiting struct {
	Object  Object `json:"object,omitzero"`
	Request string `json:"request,omitempty"`
	// At is since when it is ready, or when it is due.
	At time.Time `json:"at"`
	// Failures in a row before the attempt that it waits for.
	Failures int `json:"failures,omitempty"`
}
