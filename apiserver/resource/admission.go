// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
)

// Admission decides on writes after authorization, in two passes.
type Admission interface {
	// Admit may change r.Object or refuse the request. It runs before
	// validation, and again when a write is retried on a newer state.
	Admit(ctx context.Context, r *AdmissionRequest) error
	// Validate may only refuse. It sees the object exactly as it would be
	// stored.
	Validate(ctx context.Context, r *AdmissionRequest) error
}

// Mutator is implemented by admissions that can tell beforehand whether they
// change an object. Without it an [Admission] is taken to change every object,
// which then has to be brought into shape again.
type Mutator interface {
	// Mutates tells whether Admit may change r.Object.
	Mutates(r *AdmissionRequest) bool
}

// Mutates tells whether an admission may change the object of a request.
func Mutates(a Admission, r *AdmissionRequest) bool {
	m, tells := a.(Mutator)
	return !tells || m.Mutates(r)
}

// Operation is what a write does to an object.
type Operation string

// The operations that admission sees.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// AdmissionRequest is one write as admission sees it.
type AdmissionRequest struct {
	// Request being answered. Its Name is empty for a generated name.
	*Request
	// Operation on the object: an upsert is Create or Update, by what it does.
	Operation Operation
	// Object to be stored, in the version of the request; nil for Delete.
	Object Object
	// Old is the current state; nil for Create.
	Old Object
	// Options of the request: *metav1.CreateOptions, *metav1.UpdateOptions,
	// *metav1.PatchOptions or *metav1.DeleteOptions.
	Options any
	// DryRun tells that nothing will be stored.
	DryRun bool
}

// Admissions is a chain: every link admits in order, then every link validates.
type Admissions []Admission

// Admit implements [Admission].
func (c Admissions) Admit(ctx context.Context, r *AdmissionRequest) error {
	for _, a := range c {
		if err := a.Admit(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Mutates implements [Mutator]: one link that may change the object is enough.
func (c Admissions) Mutates(r *AdmissionRequest) bool {
	for _, a := range c {
		if Mutates(a, r) {
			return true
		}
	}
	return false
}

// Validate implements [Admission].
func (c Admissions) Validate(ctx context.Context, r *AdmissionRequest) error {
	for _, a := range c {
		if err := a.Validate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
