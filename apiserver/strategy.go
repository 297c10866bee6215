// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// Strategy holds the rules of one served version, or of a subresource. The
// server itself takes care of metadata: names, uid, timestamps, generation on
// deletion, finalizers, owner references and their validation.
type Strategy interface {
	// Normalize brings an object into the shape of its schema: coerces
	// metadata, prunes unknown fields, sets defaults. It returns the paths of
	// the fields it dropped, such as "spec.colour". It runs on every request
	// body, after every patch and mutating admission, and on records older
	// than [Storage.Since]. What is in shape already it leaves alone: a patched
	// object shares what the patch does not change with the one it replaces. An
	// error is answered with 400.
	Normalize(obj Object) (unknown []string, err error)
	// Prepare removes what the client may not set and sets what the server
	// owns, metadata.generation included. old is nil for a creation.
	Prepare(ctx context.Context, obj, old Object)
	// Validate checks an object about to be stored. old is nil for a creation.
	Validate(ctx context.Context, obj, old Object) field.ErrorList
	// Warnings about an object that is accepted.
	Warnings(ctx context.Context, obj, old Object) []string
}

// Ownership records which manager set which field, in metadata.managedFields.
type Ownership interface {
	// Update attributes to manager what differs between live and obj, and
	// returns obj with its managedFields set. live is never nil: for a creation
	// it is an empty object. It may change obj.
	Update(live, obj Object, manager string) (Object, error)
	// Apply merges the applied configuration into live. A conflict is an
	// *errors.StatusError with reason Conflict.
	Apply(live, applied Object, manager string, force bool) (Object, error)
}

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

// mutates tells whether an admission may change the object of a request.
func mutates(a Admission, r *AdmissionRequest) bool {
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
		if mutates(a, r) {
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

// Request is one API request, parsed. Handlers, strategies and admission share
// it; nobody changes it after the server has filled it in.
type Request struct {
	// Verb as authorizers know it: get, list, watch, create, update, patch,
	// delete, deletecollection, or the HTTP method in lower case.
	Verb string
	// User on whose behalf it runs.
	User *auth.User
	// Resource and Version of the path; nil outside the resource API.
	Resource *Resource
	Version  *Version
	// Subresource of the path; empty for the object itself.
	Subresource string
	Namespace   string
	Name        string
	// Path is the whole path, for requests outside the resource API.
	Path string
	// UserAgent of the client.
	UserAgent string

	warnings *exchange.Warnings
	http     *http.Request
	values   url.Values // of the query; see query
	target   exchange.Target
	in       *installed
	sub      *Subresource
}

// Warn adds a Warning header to the answer; repeated texts are sent once.
func (r *Request) Warn(text string) { r.warnings.Add(text) }

// RequestFrom returns the request that a context belongs to, or nil.
func RequestFrom(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

type requestKey struct{}

// IsDryRun tells whether the dryRun option of a request is set.
func IsDryRun(dryRun []string) bool {
	return len(dryRun) == 1 && dryRun[0] == metav1.DryRunAll
}
