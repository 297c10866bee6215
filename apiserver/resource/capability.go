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

// The capabilities of a [Resource.Backend] or [Subresource.Backend]. Objects are in the
// version of the request; errors are *errors.StatusError of apimachinery, any other
// error is answered with 500. Bodies are decoded, defaulted, admitted and validated
// before a backend gets them.
type (
	// Getter reads one object.
	Getter interface {
		Get(ctx context.Context, r *Request) (Object, error)
	}
	// Lister reads the objects of a namespace, or all of them.
	Lister interface {
		List(ctx context.Context, r *Request, options *internalversion.ListOptions) (*List, error)
	}
	// Watcher follows the objects that the options select. The sequence ends when ctx
	// does; an error ends the watch with an ERROR event.
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
	// Updater replaces the current object with the one that change returns. It calls
	// change again after a conflicting write.
	Updater interface {
		Update(ctx context.Context, r *Request, change func(current Object) (Object, error), options *metav1.UpdateOptions) (Object, error)
	}
	// Deleter removes an object and returns its last state; gone is false if the object
	// remains, for example because of a finalizer. It calls admit with the current object
	// and deletes nothing if that fails; and again after a conflicting write.
	Deleter interface {
		Delete(ctx context.Context, r *Request, admit func(current Object) error, options *metav1.DeleteOptions) (last Object, gone bool, err error)
	}
	// Connecter handles the HTTP exchange itself, for any method.
	Connecter interface {
		Connect(ctx context.Context, r *Request, w http.ResponseWriter, h *http.Request)
	}
)

// List is what a [Lister] returns.
type List struct {
	metav1.ListMeta
	Items []Object
}

// WatchEvent is one event of a [Watcher].
type WatchEvent struct {
	// Type is Added, Modified, Deleted or Bookmark. Bookmarks are sent to clients that
	// allow them. An error is yielded and not made an event.
	Type   kwatch.EventType
	Object Object
}
