// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verb is what a call does, in the words of Kubernetes' authorization.
type Verb string

// The verbs of a Client. Apply is authorized as patch but is a verb here.
const (
	VerbGet       Verb = "get"
	VerbList      Verb = "list"
	VerbWatch     Verb = "watch"
	VerbCreate    Verb = "create"
	VerbUpdate    Verb = "update"
	VerbPatch     Verb = "patch"
	VerbApply     Verb = "apply"
	VerbDelete    Verb = "delete"
	VerbDeleteAll Verb = "deletecollection"
)

// Writes reports whether the verb may change an object.
func (v Verb) Writes() bool { return v != VerbGet && v != VerbList && v != VerbWatch }

// Origin is where the answer of a read came from.
type Origin uint8

const (
	// OriginServer is an answer of the API server.
	OriginServer Origin = iota
	// OriginCache is an answer of a local copy.
	OriginCache
	// OriginOverlay is an answer that contains own writes which the watch has
	// not delivered yet.
	OriginOverlay
)

// Call is one call of a Client as an Observer sees it.
type Call struct {
	Verb        Verb
	GVK         schema.GroupVersionKind
	Key         ObjectKey // Name is empty for list, watch and deletecollection
	SubResource string
	DryRun      bool
	// Resource is the plural name of the kind, as the server has it. It is empty where
	// the kind is not mapped: for reads of a cache, and in an interceptor.
	Resource string

	// The rest is known when the call has finished.

	Origin Origin
	// ResourceVersion is the revision of what was read or written; for a list
	// that of the list. Empty where the server did not say.
	ResourceVersion string
	// Object is what was read or written, nil for lists and watches or when
	// there is none. It belongs to the caller: do not keep or change it.
	Object runtime.Object
	// Items is the number of objects in a list.
	Items int
	Err   error
	// BeforeWire says that Err came up before anything was sent.
	BeforeWire bool
	Start      time.Time
	End        time.Time
}

// Observer receives every finished call, on the goroutine of the call and with its
// context. It must be fast and must not call the client. The flight
// recorder plugs in here; caches report their reads to it as well.
type Observer func(ctx context.Context, call *Call)

type observerKey struct{}

type observers struct {
	observe Observer
	outer   *observers
}

// WithObserver makes observe see the calls made with the returned context, on
// top of the observers already there.
func WithObserver(ctx context.Context, observe Observer) context.Context {
	outer, _ := ctx.Value(observerKey{}).(*observers)
	return context.WithValue(ctx, observerKey{}, &observers{observe, outer})
}

// Unobserved returns a context whose calls no observer sees: for a Client that sends
// several requests to answer one call, and notifies of that one itself.
func Unobserved(ctx context.Context) context.Context {
	return context.WithValue(ctx, observerKey{}, (*observers)(nil))
}

// Observed reports whether calls made with ctx have observers. It spares a Client
// that answers by itself the making of a Call.
func Observed(ctx context.Context) bool {
	o, _ := ctx.Value(observerKey{}).(*observers)
	return o != nil
}

// Notify passes a finished call to the observers of ctx. Clients that answer by
// themselves, such as those of a cache, call it for every read that they answer.
func Notify(ctx context.Context, call *Call) {
	o, _ := ctx.Value(observerKey{}).(*observers)
	for ; o != nil; o = o.outer {
		o.observe(ctx, call)
	}
}
