// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step drives the built-in controllers of a control plane.
//
// A [Controller] never acts by itself. It keeps an index of what is stored,
// fed one committed write at a time, and is asked in turns which requests the
// state at one revision calls for. A [Runner] reads the store's history, asks
// the controllers, and sends their requests through the API server under the
// controllers' own identities, so that authorisation, admission and field
// ownership hold for them as for all other clients.
//
// The same controllers are therefore driven by a loop in production, by one
// call after another in a test, and by a scheduler in a simulation.
//
// In the loop, requests that are answered at once are sent one after the other: the
// controllers act in one order, and the same writes lead to the same requests. Requests
// that take longer are left behind: up to five senders for each identity and kind of
// object carry them out, in order per object, while the other controllers go on, and a
// [Pipelined] one with its other objects.
package step

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/storage"
)

// Controller is one built-in controller. Its methods are called from one
// goroutine at a time. Given the same calls it returns the same requests.
type Controller interface {
	// Name tells the controller in logs.
	Name() string
	// Reset forgets the index and builds it from a snapshot; everything in the
	// snapshot is looked at again.
	Reset(view storage.View)
	// Filter reports whether a committed write may change the index, or make
	// anything due; if not, it is not observed. Most writes concern no controller. It is
	// called for every write, with the store locked, and has to return quickly,
	// from what the controller has observed, without changing or waiting for
	// anything.
	Filter(event storage.Event) bool
	// Handle applies one committed write that concerns the controller to the
	// index and remembers what has to be looked at again because of it.
	Handle(event storage.Event)
	// Sync looks at what is due and returns the requests that the snapshot, which
	// has the revision of the last observed write, calls for, in a fixed order.
	// The result is empty when the state is as it should be.
	Sync(view storage.View, now time.Time) []Request
	// Done tells the outcome of a request that Sync returned; of those of one call
	// in their order, and before the next Sync unless the controller is [Pipelined].
	// Writes, and a Reset, may be observed between a step and its reports. After an
	// error the subject of the request, if there still is one, is looked at again in
	// the next step.
	Done(request Request, err error)
}

// Pipelined is a Controller that is stepped while requests of earlier steps are under way, so
// that its objects do not wait for one another. Sync returns no request about a subject
// before all earlier ones about it are reported; requests about one subject are reported
// in their order, others as they end.
type Pipelined interface {
	Controller
	// Pipelined has no effect: it marks the type.
	Pipelined()
}

// Waker is a Controller that also has something to do when only time passes.
type Waker interface {
	// Wake returns when Sync has to be called although nothing was written;
	// the zero time for never.
	Wake() time.Time
}

// Signaller is a Controller that may have something to do because of what happens in this
// process: nothing is written, and [Waker] could not know the time.
type Signaller interface {
	// OnSignal is called once, before anything else. signal has Sync called soon; it
	// may be called at any time, from any goroutine, and does not block.
	OnSignal(signal func())
}

// Subject is what a request is about, for the controller that asked for it.
type Subject struct {
	// Key of the object whose state called for the request.
	Key storage.Key
	// Detail distinguishes requests for one object.
	Detail string
}

// Request is one call of the API that a controller asks for.
type Request struct {
	// User is the name of the identity that the request is sent under.
	User string
	// Method is the HTTP method.
	Method string
	// Path is the URL path of an object, collection or subresource.
	Path string
	// Query holds the parameters of the URL.
	Query url.Values
	// ContentType of the body.
	ContentType string
	// Accept are the media types of the answer; empty: any.
	Accept string
	// Body is sent as it is; nil sends none.
	Body []byte
	// Subject names what the request is about.
	Subject Subject
	// Number is for the controller that asks: Done gets it back.
	Number uint64
	// Do, if set, carries the request out: one to another server, and not to this one. It
	// returns when its context ends. Method and Path are then for logs.
	Do func(ctx context.Context) error
}

// Identities of the built-in controllers, as a full cluster names them.
const (
	GarbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	NamespaceController = "system:serviceaccount:kube-system:namespace-controller"
	APIServer           = "system:apiserver"
	ControllerManager   = "system:kube-controller-manager"
	Scheduler           = "system:kube-scheduler"
)

// KubeSystem precedes the names of the service accounts of kube-system, and
// NodePrefix the names of nodes, in the names of users.
const (
	KubeSystem = "system:serviceaccount:kube-system:"
	NodePrefix = "system:node:"
)

// Content types of the bodies that controllers send.
const (
	JSON       = "application/json"
	Protobuf   = runtime.ContentTypeProtobuf
	MergePatch = "application/merge-patch+json"
)

// Delete returns the request that deletes what is at path with options, given
// as a JSON encoded DeleteOptions.
func Delete(user, path string, options []byte, about Subject) Request {
	return Request{User: user, Method: http.MethodDelete, Path: path, ContentType: JSON, Body: options, Subject: about}
}

// Typed is an object of a built-in kind as a Go value.
type Typed interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// Encode returns an object, which says its own type, as protobuf: written and
// read in a fraction of the time that JSON takes.
func Encode(obj Typed) []byte {
	raw, _ := obj.Marshal() // fails for other types than those of the API only
	unknown := runtime.Unknown{Raw: raw}
	unknown.APIVersion, unknown.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	const mark = "k8s\x00"
	out := make([]byte, len(mark)+unknown.Size())
	copy(out, mark)
	_, _ = unknown.MarshalTo(out[len(mark):]) // there is room
	return out
}

// Put returns the request that replaces what is at path.
func Put(user, path string, object []byte, about Subject) Request {
	return Request{User: user, Method: http.MethodPut, Path: path, ContentType: JSON, Body: object, Subject: about}
}

// Patch returns the request that merges a JSON document into what is at path.
func Patch(user, path string, patch []byte, about Subject) Request {
	return Request{User: user, Method: http.MethodPatch, Path: path, ContentType: MergePatch, Body: patch, Subject: about}
}

// Apply returns the request by which a field manager applies a JSON document to what is at
// path, and takes over what others own of it.
func Apply(user, path, manager string, document []byte, about Subject) Request {
	return Request{
		User: user, Method: http.MethodPatch, Path: path, ContentType: string(types.ApplyPatchType),
		Query: url.Values{"fieldManager": {manager}, "force": {"true"}}, Body: document, Subject: about,
	}
}

// UserAgent is how the parts of a plane present themselves; it names them as
// field managers.
func UserAgent(user string) string {
	switch {
	case user == APIServer:
		return "kube-apiserver"
	case user == Scheduler:
		return "kube-scheduler"
	case strings.HasPrefix(user, NodePrefix):
		return "kubelet"
	}
	return "kube-controller-manager"
}
