// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	"iter"
	"log"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// shelf is a backend of notes with all verbs. Its lock makes each write one step, and its
// events are the history that watches continue from.
type shelf struct {
	mu      sync.Mutex
	notes   map[string]*Note
	events  []resource.WatchEvent
	changed chan struct{} // closed with the next change
}

func newShelf() *shelf {
	return &shelf{notes: map[string]*Note{}, changed: make(chan struct{})}
}

// revision is that of the newest change. The one of an empty shelf is not 0, which would
// mean any to clients.
func (s *shelf) revision() int { return len(s.events) + 1 }

// record makes a change, and an event of it. note is the state after it or, of a deletion,
// before it; it gets the revision.
func (s *shelf) record(t watch.EventType, note *Note) {
	e := resource.WatchEvent{Type: t, Object: note}
	key := note.Namespace + "/" + note.Name
	if old := s.notes[key]; old != nil {
		e.Previous = old
	}
	note.ResourceVersion = strconv.Itoa(s.revision() + 1)
	if s.notes[key] = note; t == watch.Deleted {
		delete(s.notes, key)
	}
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// find returns a copy of the note that a request names.
func (s *shelf) find(r *resource.Request) (*Note, error) {
	note := s.notes[r.Namespace+"/"+r.Name]
	if note == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	return note.DeepCopyObject().(*Note), nil
}

// Get implements [resource.Getter].
func (s *shelf) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note, err := s.find(r)
	if err != nil {
		return nil, err
	}
	return note, nil
}

// List implements [resource.Lister]. The server leaves out what is not selected.
func (s *shelf) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &resource.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.revision())}}
	for _, key := range slices.Sorted(maps.Keys(s.notes)) {
		list.Items = append(list.Items, s.notes[key].DeepCopyObject().(*Note))
	}
	return list, nil
}

// Watch implements [resource.Watcher]. The server begins watches without a revision with List.
func (s *shelf) Watch(ctx context.Context, _ *resource.Request, o *internalversion.ListOptions) (iter.Seq2[resource.WatchEvent, error], error) {
	seen, err := strconv.Atoi(o.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(yield func(resource.WatchEvent, error) bool) {
		for {
			s.mu.Lock()
			events, changed := s.events[min(seen, s.revision())-1:], s.changed
			s.mu.Unlock()
			for _, e := range events {
				e.Object = e.Object.DeepCopyObject().(*Note)
				if e.Previous != nil {
					e.Previous = e.Previous.DeepCopyObject().(*Note)
				}
				if !yield(e, nil) {
					return
				}
			}
			seen += len(events)
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}, nil
}

// Create implements [resource.Creater]. The server has set the uid and the time.
func (s *shelf) Create(_ context.Context, r *resource.Request, obj resource.Object, o *metav1.CreateOptions) (resource.Object, error) {
	note, err := custom.As[*Note](obj)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes[note.Namespace+"/"+note.Name] != nil {
		return nil, apierrors.NewAlreadyExists(r.Resource.GroupResource(), note.Name)
	}
	if !resource.IsDryRun(o.DryRun) {
		s.record(watch.Added, note)
	}
	return note.DeepCopyObject().(*Note), nil
}

// Update implements [resource.Updater]. The server has compared the resourceVersion; what
// loses its last finalizer after it was deleted goes.
func (s *shelf) Update(_ context.Context, r *resource.Request, change func(resource.Object) (resource.Object, error), o *metav1.UpdateOptions) (resource.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current, err := s.find(r)
	if err != nil {
		return nil, err
	}
	obj, err := change(current)
	if err != nil {
		return nil, err
	}
	note, err := custom.As[*Note](obj)
	switch {
	case err != nil:
		return nil, err
	case resource.IsDryRun(o.DryRun):
	case note.DeletionTimestamp != nil && len(note.Finalizers) == 0:
		s.record(watch.Deleted, note)
	default:
		s.record(watch.Modified, note)
	}
	return note.DeepCopyObject().(*Note), nil
}

// Delete implements [resource.Deleter]. What has finalizers is only marked.
func (s *shelf) Delete(_ context.Context, r *resource.Request, admit func(resource.Object) error, o *metav1.DeleteOptions) (last resource.Object, gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note, err := s.find(r)
	if err != nil {
		return nil, false, err
	}
	if err := admit(note.DeepCopyObject().(*Note)); err != nil {
		return nil, false, err
	}
	gone = len(note.Finalizers) == 0
	switch {
	case resource.IsDryRun(o.DryRun):
	case gone:
		s.record(watch.Deleted, note)
	case note.DeletionTimestamp == nil:
		now := metav1.Now()
		note.DeletionTimestamp = &now
		s.record(watch.Modified, note)
	}
	return note.DeepCopyObject().(*Note), gone, nil
}

// A kind with a backend of its own. Schema, defaults, rules, apply, selectors and initial
// events are the server's.
func Example_backend() {
	server, err := apiserver.New(apiserver.Options{
		Store:      storage.NewMemory(storage.MemoryOptions{}), // for kinds without a backend
		Authorizer: auth.AllowAll{},
	})
	if err != nil {
		log.Fatal(err)
	}
	notes, err := custom.Kind[*Note]{Definition: definition, Backend: newShelf()}.Resource()
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		log.Fatal(err)
	}
	send(server, "POST", "", `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "milk"}, "spec": {"text": "buy milk"}}`)
	send(server, "PATCH", "/milk", `{"metadata": {"resourceVersion": "1"}, "spec": {"text": "buy bread"}}`)
	send(server, "PATCH", "/milk", `{"spec": {"colour": "red", "text": "buy milk and bread"}}`)
	send(server, "GET", "?fieldSelector=spec.colour%3Dyellow", "")
	// Output:
	// 201 milk {Text:buy milk Colour:yellow}
	// 409 Operation cannot be fulfilled on notes.example.com "milk": the object has been modified; please apply your changes to the latest version and try again
	// 422 Note.example.com "milk" is invalid: spec: Invalid value: red notes are short
	// 200 milk {Text:buy milk Colour:yellow}
}
