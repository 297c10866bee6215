// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservertest_test

import (
	"context"
	"iter"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apiservertest"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, plural: notes}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}}
    schema:
      openAPIV3Schema:
        type: object
        required: [text]
        properties: {text: {type: string}, spec: {type: object, properties: {copies: {type: integer}}}, status: {type: object, properties: {copies: {type: integer}}}}
`

// subject serves notes, which a backend has unless it is nil.
func subject(t *testing.T, store storage.Store, backend any) apiservertest.Subject {
	t.Helper()
	server, err := apiserver.New(apiserver.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	notes, err := custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition), Backend: backend}.Resource()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return apiservertest.Subject{
		Server: server, Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "notes"},
		Object: func() map[string]any { return map[string]any{"text": "x"} },
		Status: func() map[string]any { return map[string]any{"copies": 2} },
	}
}

func memory() storage.Store { return storage.NewMemory(storage.MemoryOptions{}) }

func TestMemoryStoreConforms(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject { return subject(t, memory(), nil) })
}

func TestDurableStoreConforms(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		store, err := local.Open(t.TempDir(), local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return subject(t, store, nil)
	})
}

// computed is a backend of two notes that are made when they are read.
type computed struct{}

func (computed) note(name string) resource.Object {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}, "text": "I am " + name}}
}

func (c computed) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	if r.Name != "one" && r.Name != "two" {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	return c.note(r.Name), nil
}

func (c computed) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{Items: []resource.Object{c.note("one"), c.note("two")}}, nil
}

func TestComputedKindsConform(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		s := subject(t, memory(), computed{})
		s.Have = []string{"one", "two"}
		return s
	})
}

// followed is a backend of notes that never change, and that are watched.
type followed struct{ computed }

func (f followed) List(ctx context.Context, r *resource.Request, o *internalversion.ListOptions) (*resource.List, error) {
	list, err := f.computed.List(ctx, r, o)
	list.ResourceVersion = "1"
	return list, err
}

func (followed) Watch(ctx context.Context, _ *resource.Request, _ *internalversion.ListOptions) (iter.Seq2[resource.WatchEvent, error], error) {
	return func(func(resource.WatchEvent, error) bool) { <-ctx.Done() }, nil
}

func TestComputedKindsThatAreWatchedConform(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		s := subject(t, memory(), followed{})
		s.Have = []string{"one", "two"}
		return s
	})
}

// deleting is a backend whose objects can be listed and deleted.
type deleting struct {
	computed
	gone map[string]bool
}

func (d deleting) List(ctx context.Context, r *resource.Request, o *internalversion.ListOptions) (*resource.List, error) {
	all, err := d.computed.List(ctx, r, o)
	list := &resource.List{}
	for _, obj := range all.Items {
		if !d.gone[obj.GetName()] {
			list.Items = append(list.Items, obj)
		}
	}
	return list, err
}

func (d deleting) Delete(ctx context.Context, r *resource.Request, admit func(resource.Object) error, _ *metav1.DeleteOptions) (resource.Object, bool, error) {
	obj, err := d.Get(ctx, r)
	if err == nil {
		err = admit(obj)
	}
	d.gone[r.Name] = err == nil
	return obj, true, err
}

func TestBackendsThatListAndDeleteHaveDeleteCollection(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		s := subject(t, memory(), deleting{gone: map[string]bool{}})
		s.Have = []string{"one", "two"}
		return s
	})
	b := deleting{gone: map[string]bool{}}
	s := subject(t, memory(), b)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "https://in-process/apis/example.com/v1/namespaces/default/notes?fieldSelector=metadata.name%3Dtwo", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Server.RoundTripper(&auth.User{Name: "admin", Groups: []string{auth.Masters}}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // it is not read
	if answer.StatusCode != http.StatusOK || b.gone["one"] || !b.gone["two"] {
		t.Errorf("%s, deleted: %v, want two", answer.Status, b.gone)
	}
}
