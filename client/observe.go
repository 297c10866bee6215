// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

	// Before is the version of the object that the cache of the client held when a write
	// was sent; nil if it held none, or an update was of another revision. It is shared:
	// read it, never change it.
	Before runtime.Object
	// Patch is what a patch or an apply sent, PatchType its form. It belongs to the call.
	Patch     []byte
	PatchType types.PatchType

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
	before  Observer // may be nil
	observe Observer
	outer   *observers
}

// WithObserver makes observe see the calls made with the returned context, on
// top of the observers already there.
func WithObserver(ctx context.Context, observe Observer) context.Context {
	outer, _ := ctx.Value(observerKey{}).(*observers)
	return context.WithValue(ctx, observerKey{}, &observers{nil, observe, outer})
}

// WithWriteObserver is [WithObserver], and before is called with each write that is
// about to be sent, once its kind and key are known: it may set Call.Before.
func WithWriteObserver(ctx context.Context, before, observe Observer) context.Context {
	outer, _ := ctx.Value(observerKey{}).(*observers)
	return context.WithValue(ctx, observerKey{}, &observers{before, observe, outer})
}

// begun asks what is known of the object of a write that is about to be sent, which is
// at a revision if that is not empty.
func begun(ctx context.Context, call *Call, revision string) {
	o, _ := ctx.Value(observerKey{}).(*observers)
	for ; o != nil; o = o.outer {
		if o.before != nil {
			o.before(ctx, call)
		}
	}
	if call.Before == nil || revision == "" {
		return
	}
	if m, ok := call.Before.(metav1.Object); !ok || m.GetResourceVersion() != revision {
		call.Before = nil
	}
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
