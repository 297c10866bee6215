// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"iter"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"
)

// The capabilities of a [Resource.Backend] or [Subresource.Backend].
//
// The server does for them what it does for stored objects: it decodes bodies, sets defaults
// and managedFields, asks admission, validates objects and their metadata, gives new objects
// their uid and time of creation, keeps what an update cannot change, compares uid and
// resourceVersion, counts generations, selects, and converts: a backend sees its objects in
// one version, [Storage.Version]. It gets them as unstructured objects unless the version has
// a Go type, and may return any Go type that has their JSON form. What it returns is the
// server's, and what it gets is the backend's: neither is used by the other afterwards.
//
// Errors are *errors.StatusError of apimachinery, any other error is answered with 500. A
// request whose options have DryRun set, see [IsDryRun], is answered as any other and changes
// nothing. A resourceVersion is a decimal number that grows with every change of any object
// of the resource; objects that are only computed may have none.
//
// Finalizers are the backend's: with a Deleter and an Updater, an object that has some is not
// removed, but gets a deletionTimestamp, and is removed by the update that takes away the
// last one. So are grace periods and propagation policies.
type (
	// Getter reads one object.
	Getter interface {
		Get(ctx context.Context, r *Request) (Object, error)
	}
	// Lister reads the objects of a namespace, or all of them. The server selects from what
	// it returns; it may leave out what the options do not select, and may ignore limit and
	// continue. A list that a watch can follow has a ResourceVersion.
	Lister interface {
		List(ctx context.Context, r *Request, options *internalversion.ListOptions) (*List, error)
	}
	// Watcher follows the objects of a namespace, or all of them: it returns all changes
	// after options.ResourceVersion, in order, or 410 Gone ([errors.NewResourceExpired]) if
	// it does not have them any more. The server selects from them. If the backend is a
	// [Lister] whose lists have a ResourceVersion, the server lists what a watch begins
	// with, and there is always a revision to continue from; otherwise a watch without one
	// begins with Added events for what is there. The sequence ends when ctx does; an error
	// ends the watch with an ERROR event. It may be that it is never read: ctx ends then.
	Watcher interface {
		Watch(ctx context.Context, r *Request, options *internalversion.ListOptions) (iter.Seq2[WatchEvent, error], error)
	}
	// Creater creates an object, or only computes an answer from it. An object of a backend
	// that is a [Getter], too, has a name, a uid and a time of creation; if the name was
	// generated and the error is AlreadyExists, Create is called again with another name.
	// It returns nil if there is no object to answer with: the answer is a Status.
	Creater interface {
		Create(ctx context.Context, r *Request, obj Object, options *metav1.CreateOptions) (Object, error)
	}
	// Updater replaces the current object with the one that change returns, which has the
	// resourceVersion of the current one, and gives it a new one. It stores nothing if change
	// fails, calls it again after a conflicting write, and returns NotFound without a call if
	// there is no object: if the backend is a [Creater], too, an applied object is then
	// created.
	Updater interface {
		Update(ctx context.Context, r *Request, change func(current Object) (Object, error), options *metav1.UpdateOptions) (Object, error)
	}
	// Deleter removes an object and returns its last state; gone is false if the object
	// remains, for example because of a finalizer. It calls admit with the current object
	// and deletes nothing if that fails; and again after a conflicting write. Preconditions
	// are checked by admit.
	Deleter interface {
		Delete(ctx context.Context, r *Request, admit func(current Object) error, options *metav1.DeleteOptions) (last Object, gone bool, err error)
	}
	// Connecter handles the HTTP exchange itself. As a subresource it has the verbs that
	// [Subresource.Verbs] names, by default get and create: clients open streams with GET
	// and POST, and need the right to the verb of the one that they use.
	Connecter interface {
		Connect(ctx context.Context, r *Request, w http.ResponseWriter, h *http.Request)
	}
)

// BackendVerbs returns the verbs that follow from the capabilities of a backend.
func BackendVerbs(backend any) []string {
	var verbs []string
	add := func(has bool, names ...string) {
		if has {
			verbs = append(verbs, names...)
		}
	}
	_, connects := backend.(Connecter)
	_, creates := backend.(Creater)
	_, deletes := backend.(Deleter)
	_, gets := backend.(Getter)
	_, lists := backend.(Lister)
	_, updates := backend.(Updater)
	_, watches := backend.(Watcher)
	add(creates || connects, "create")
	add(deletes, "delete")
	add(deletes && lists, "deletecollection")
	add(gets || connects, "get")
	add(lists, "list")
	add(updates, "patch", "update")
	add(watches, "watch")
	return verbs
}

// List is what a [Lister] returns.
type List struct {
	metav1.ListMeta
	Items []Object
}

// WatchEvent is one event of a [Watcher].
type WatchEvent struct {
	// Type is Added, Modified, Deleted or Bookmark. Bookmarks are sent to clients that
	// allow them. An error is yielded and not made an event.
	Type kwatch.EventType
	// Object after the change; of a Deleted event its last state, with the revision of the
	// deletion; of a Bookmark one with nothing but a resourceVersion, the revision up to
	// which there are no more events.
	Object Object
	// Previous is the state before, of a Modified event; nil: the backend does not know
	// it. The server then sends a Deleted event to each client whose selectors do not
	// select the object now, whether they did before or not.
	Previous Object
}
