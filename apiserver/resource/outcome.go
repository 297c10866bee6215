// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

// Outcome is what became of a write that was admitted.
type Outcome int

const (
	// NotStored: the write was refused or given up, and is not going to happen.
	NotStored Outcome = iota
	// Stored: the write is durable, whatever the client was answered.
	Stored
	// Unknown: the request ended before the store answered. If the write happens, it has
	// happened in every state of the store that is newer than the one at this moment.
	Unknown
)

// Finish calls admissions back when the outcome of a write is known, so that they can
// give back what they took for it. The zero value is empty. It is for one goroutine
// at a time.
type Finish struct {
	calls []func(Outcome)
}

// Add has f called with the outcome, once. It is dropped if the receiver is nil.
func (f *Finish) Add(call func(Outcome)) {
	if f != nil {
		f.calls = append(f.calls, call)
	}
}

// Run calls back, last added first, and forgets all calls.
func (f *Finish) Run(o Outcome) {
	calls := f.calls
	f.calls = nil
	for i := len(calls) - 1; i >= 0; i-- {
		calls[i](o)
	}
}
