// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservertest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/apiservertest"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
)

// shelf is a backend that keeps its objects in a map.
type shelf struct {
	mu       sync.Mutex
	objects  map[string]resource.Object
	revision int
	taken    int // how often a new object is refused, as if its name were taken
}

func (b *shelf) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	obj, ok := b.objects[r.Namespace+"/"+r.Name]
	if !ok {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	return obj.DeepCopyObject().(resource.Object), nil
}

func (b *shelf) List(_ context.Context, r *resource.Request, _ *internalversion.ListOptions) (*resource.List, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := &resource.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(b.revision)}}
	for _, obj := range b.objects {
		if r.Namespace == "" || r.Namespace == obj.GetNamespace() {
			list.Items = append(list.Items, obj.DeepCopyObject().(resource.Object))
		}
	}
	return list, nil
}

func (b *shelf) Create(_ context.Context, r *resource.Request, obj resource.Object, o *metav1.CreateOptions) (resource.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := obj.GetNamespace() + "/" + obj.GetName()
	if _, is := b.objects[key]; is || b.taken > 0 {
		b.taken--
		return nil, apierrors.NewAlreadyExists(r.Resource.GroupResource(), obj.GetName())
	}
	b.revision++
	obj.SetResourceVersion(strconv.Itoa(b.revision))
	if !resource.IsDryRun(o.DryRun) {
		b.objects[key] = obj
	}
	return obj.DeepCopyObject().(resource.Object), nil
}

func (b *shelf) Update(_ context.Context, r *resource.Request, change func(resource.Object) (resource.Object, error), o *metav1.UpdateOptions) (resource.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := r.Namespace + "/" + r.Name
	before, ok := b.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	obj, err := change(before.DeepCopyObject().(resource.Object))
	if err != nil {
		return nil, err
	}
	if resource.IsDryRun(o.DryRun) {
		return obj, nil
	}
	b.revision++
	obj.SetResourceVersion(strconv.Itoa(b.revision))
	b.objects[key] = obj
	return obj.DeepCopyObject().(resource.Object), nil
}

// post creates a note, and returns the answer with its status.
func post(t *testing.T, s apiservertest.Subject, body string) (*unstructured.Unstructured, int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://in-process/apis/example.com/v1/namespaces/default/notes", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.Server.RoundTripper(&auth.User{Name: "admin", Groups: []string{auth.Masters}}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	out := &unstructured.Unstructured{}
	if err := json.NewDecoder(answer.Body).Decode(&out.Object); err != nil {
		t.Fatal(err)
	}
	return out, answer.StatusCode
}

func TestKindsOfABackendThatKeepsThemConform(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		return subject(t, memory(), &shelf{objects: map[string]resource.Object{}})
	})
}

func TestNamesAreGeneratedAgainThatABackendHas(t *testing.T) {
	t.Parallel()
	for taken, code := range map[int]int{3: 201, 20: 409} {
		s := subject(t, memory(), &shelf{objects: map[string]resource.Object{}, taken: taken})
		made, answered := post(t, s, `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"generateName": "a-"}, "text": "x"}`)
		if answered != code || code == 201 && (len(made.GetName()) != len("a-12345") || made.GetUID() == "" || made.GetCreationTimestamp().Time.IsZero()) {
			t.Errorf("after %d names that are taken: %d, %v; want %d", taken, answered, made.Object, code)
		}
	}
}

func TestBackendsGetNoInvalidNames(t *testing.T) {
	t.Parallel()
	b := &shelf{objects: map[string]resource.Object{}}
	s := subject(t, memory(), b)
	for _, metadata := range []string{`{}`, `{"name": "A b"}`, `{"name": "a/b"}`, `{"generateName": "_"}`} {
		if answer, code := post(t, s, `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": `+metadata+`, "text": "x"}`); code != 422 || len(b.objects) > 0 {
			t.Errorf("metadata %s: %d, %v", metadata, code, answer.Object)
		}
	}
}
