// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
// object in place. Without it an [Admission] is assumed to change every object, which is
// then defaulted and pruned again.
type Mutator interface {
	// Mutates reports whether Admit may change the object that r.Object is. It need not
	// report that Admit may put another one in its place, which is defaulted and pruned.
	Mutates(r *AdmissionRequest) bool
}

// Mutates reports whether an admission may change the object of a request.
func Mutates(a Admission, r *AdmissionRequest) bool {
	m, ok := a.(Mutator)
	return !ok || m.Mutates(r)
}

// ValidatesOnly is embedded by an [Admission] that has no mutating pass.
type ValidatesOnly struct{}

// Admit implements [Admission]; Validate decides, on the object as it is going to be.
func (ValidatesOnly) Admit(context.Context, *AdmissionRequest) error { return nil }

// Mutates implements [Mutator]: objects stay as they are.
func (ValidatesOnly) Mutates(*AdmissionRequest) bool { return false }

func (ValidatesOnly) only() Pass { return ValidatingPass }

// MutatesOnly is embedded by an [Admission] that has no validating pass.
type MutatesOnly struct{}

// Validate implements [Admission]; Admit has decided.
func (MutatesOnly) Validate(context.Context, *AdmissionRequest) error { return nil }

func (MutatesOnly) only() Pass { return MutatingPass }

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
	// *metav1.PatchOptions or *metav1.DeleteOptions; for Connect the options of the
	// connection, such as *corev1.PodExecOptions.
	Options any
	// Finish calls back when the outcome of the write is known, and that of each
	// attempt where it is retried on a newer state. It is nil where nothing is stored by
	// the server itself: for dry runs, connections, and resources with a backend.
	Finish *Finish
	// Strategy of Object, which sets the defaults of what an admission puts in its place;
	// nil if there are no rules, as for a Scale.
	Strategy Strategy
	// Round of the mutating pass; nil if there is no second one.
	Round *Round
}

// Default applies the schema and its defaults to an object that is going to be
// r.Object. An error is a 500.
func (r *AdmissionRequest) Default(obj Object) error {
	if r.Strategy == nil || obj == nil {
		return nil
	}
	if _, err := r.Strategy.Default(obj); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("after admission: %w", err))
	}
	return nil
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

// Repeated is a chain whose mutating pass runs a second time if a member asks for it with
// [Round.Repeat]. Validate runs once.
type Repeated struct{ Admissions }

// Admit implements [Admission].
func (c Repeated) Admit(ctx context.Context, r *AdmissionRequest) error {
	outer := r.Round
	defer func() { r.Round = outer }()
	round := Round{}
	r.Round = &round
	if err := c.Admissions.Admit(ctx, r); err != nil || !round.repeat {
		return err
	}
	round.second = true
	return c.Admissions.Admit(ctx, r)
}

// Round is the state of a mutating pass that may run twice. The methods of nil are those
// of a pass that runs once.
type Round struct {
	repeat, second bool
	values         map[any]any
}

// Repeat asks for a second round: the object has changed after other admissions saw it.
// In the second round it does nothing.
func (r *Round) Repeat() {
	if r != nil {
		r.repeat = true
	}
}

// Second reports whether this is the second round.
func (r *Round) Second() bool { return r != nil && r.second }

// Value returns what an admission has kept for the second round under a key of its own,
// nil for nothing.
func (r *Round) Value(key any) any {
	if r == nil {
		return nil
	}
	return r.values[key]
}

// SetValue keeps a value for the second round.
func (r *Round) SetValue(key, value any) {
	if r == nil {
		return
	}
	if r.values == nil {
		r.values = map[any]any{}
	}
	r.values[key] = value
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
	case observed:
		if a.Admission = ForResource(a.Admission, r); a.Admission == nil {
			return nil
		}
		return a
	case Repeated:
		links, _ := ForResource(a.Admissions, r).(Admissions)
		if len(links) == 0 {
			return nil
		}
		return Repeated{links}
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
