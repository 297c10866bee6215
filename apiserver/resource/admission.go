// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Mutator is implemented by admissions that know beforehand whether they change an
// object. Without it an [Admission] is assumed to change every object, which is then
// defaulted and pruned again.
type Mutator interface {
	// Mutates reports whether Admit may change r.Object.
	Mutates(r *AdmissionRequest) bool
}

// Mutates reports whether an admission may change the object of a request.
func Mutates(a Admission, r *AdmissionRequest) bool {
	m, ok := a.(Mutator)
	return !ok || m.Mutates(r)
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
	// DryRun reports that nothing will be stored.
	DryRun bool
	// Finish calls back when the outcome of the write is known, and that of each
	// attempt where it is retried on a newer state. It is nil where nothing is stored by
	// the server itself: for dry runs, deletions, connections, and resources with a backend.
	Finish *Finish
}

// Admissions is a chain: all members admit in order, then all members validate.
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

// Mutates implements [Mutator]: it reports whether any member may change the object.
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

// restricted is an admission for some resources.
type restricted struct {
	Admission
	to []schema.GroupResource
}

// Restrict returns an admission that handles the given resources, named like
// CustomResourceDefinitions: "pods", "deployments.apps". Requests for other resources
// skip it. The match is made once per installed resource, not per request; see
// [ForResource].
func Restrict(a Admission, to ...string) Admission {
	c := restricted{Admission: a}
	for _, name := range to {
		c.to = append(c.to, schema.ParseGroupResource(name))
	}
	return c
}

// Admit implements [Admission].
func (c restricted) Admit(ctx context.Context, r *AdmissionRequest) error {
	if !c.concerns(r.Resource) {
		return nil
	}
	return c.Admission.Admit(ctx, r)
}

// Mutates implements [Mutator].
func (c restricted) Mutates(r *AdmissionRequest) bool {
	return c.concerns(r.Resource) && Mutates(c.Admission, r)
}

// Validate implements [Admission].
func (c restricted) Validate(ctx context.Context, r *AdmissionRequest) error {
	if !c.concerns(r.Resource) {
		return nil
	}
	return c.Admission.Validate(ctx, r)
}

func (c restricted) concerns(r *Resource) bool {
	return r != nil && slices.Contains(c.to, r.GroupResource())
}

// ForResource returns the part of an admission that handles requests for a resource;
// nil if there is none.
func ForResource(a Admission, r *Resource) Admission {
	switch a := a.(type) {
	case restricted:
		if !a.concerns(r) {
			return nil
		}
		return ForResource(a.Admission, r)
	case Admissions:
		var links Admissions
		for _, link := range a {
			if link = ForResource(link, r); link != nil {
				links = append(links, link)
			}
		}
		if len(links) == 0 {
			return nil
		}
		return links
	}
	return a
}
