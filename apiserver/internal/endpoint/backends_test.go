// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/internal/testserver"
	"github.com/steer-dev/steer/apiserver/resource"
)

// notes returns a resource whose objects a backend keeps, with all its verbs but watch.
func notes() *resource.Resource {
	v := versionOf("Note")
	return &resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "notes", Singular: "note", Kind: "Note", ListKind: "NoteList", Namespaced: true},
		Storage:  resource.Storage{Version: "v1"},
		Versions: []resource.Version{v},
		Backend:  &notebook{notes: map[string]resource.Object{}},
	}
}

// versionOf returns a version of a kind with the fields and rules of widgets.
func versionOf(kind string) resource.Version {
	v := testserver.WidgetVersion("v1")
	v.Subresources = nil
	v.FieldManager = apply.New(apply.Endpoint{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, Types: apply.Deduced()})
	return v
}

// notebook keeps notes by name.
type notebook struct {
	mu    sync.Mutex
	notes map[string]resource.Object
}

func (b *notebook) current(r *resource.Request) (resource.Object, error) {
	if note := b.notes[r.Name]; note != nil {
		return note.DeepCopyObject().(resource.Object), nil
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
}

// Get implements [resource.Getter].
func (b *notebook) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(r)
}

// List implements [resource.Lister].
func (b *notebook) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := &resource.List{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range slices.Sorted(maps.Keys(b.notes)) {
		list.Items = append(list.Items, b.notes[name].DeepCopyObject().(resource.Object))
	}
	return list, nil
}

// Create implements [resource.Creater].
func (b *notebook) Create(_ context.Context, r *resource.Request, obj resource.Object, o *metav1.CreateOptions) (resource.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notes[obj.GetName()] != nil {
		return nil, apierrors.NewAlreadyExists(r.Resource.GroupResource(), obj.GetName())
	}
	if len(o.DryRun) == 0 {
		b.notes[obj.GetName()] = obj
	}
	return obj, nil
}

// Update implements [resource.Updater].
func (b *notebook) Update(_ context.Context, r *resource.Request, change func(resource.Object) (resource.Object, error), o *metav1.UpdateOptions) (resource.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, err := b.current(r)
	if err != nil {
		return nil, err
	}
	obj, err := change(old)
	if err == nil && len(o.DryRun) == 0 {
		b.notes[r.Name] = obj
	}
	return obj, err
}

// Delete implements [resource.Deleter].
func (b *notebook) Delete(_ context.Context, r *resource.Request, admit func(resource.Object) error, o *metav1.DeleteOptions) (resource.Object, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, err := b.current(r)
	if err != nil {
		return nil, false, err
	}
	if err := admit(old); err != nil {
		return nil, false, err
	}
	if len(o.DryRun) == 0 {
		delete(b.notes, r.Name)
	}
	return old, true, nil
}

// cards returns a stored resource with subresources of other kinds: paint is an action,
// stamp answers a creation, and line is a connection.
func cards() *resource.Resource {
	v := versionOf("Card")
	empty := func() resource.Object { return &resource.Doc{} }
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
	}
	v.Subresources = []resource.Subresource{
		{Name: "paint", Kind: kind("Paint"), New: empty, Action: paint},
		{Name: "stamp", Kind: kind("Stamp"), New: empty, Backend: stamp{}},
		{Name: "line", Kind: kind("Line"), Verbs: []string{"create", "get"}, Backend: line{}, Options: func() runtime.Object { return &corev1.PodExecOptions{} }},
	}
	return &resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "cards", Singular: "card", Kind: "Card", ListKind: "CardList", Namespaced: true},
		Storage:  resource.Storage{Bucket: "example.com/cards", Version: "v1"},
		Versions: []resource.Version{v},
	}
}

// paint gives a card the colour of a Paint, if it has none.
func paint(_ context.Context, obj, body resource.Object) (answer resource.Object, err error) {
	card := obj.(*resource.Doc)
	content := card.Content()
	if colour, _, _ := unstructured.NestedString(content, "spec", "colour"); colour != "" {
		return nil, fmt.Errorf("the card is %s: %w", colour, errPainted)
	}
	colour, _, _ := unstructured.NestedString(body.(*resource.Doc).Content(), "colour")
	err = unstructured.SetNestedField(content, colour, "spec", "colour")
	card.SetContent(content)
	return nil, err
}

var errPainted = errors.New("it is painted")

// stamp answers a creation: with a Status for the text "none", else with the object.
type stamp struct{}

// Create implements [resource.Creater].
func (stamp) Create(_ context.Context, r *resource.Request, obj resource.Object, _ *metav1.CreateOptions) (resource.Object, error) {
	d := obj.(*resource.Doc)
	content := d.Content()
	if content["text"] == "none" {
		return nil, nil // as the interface has it
	}
	content["on"] = r.Name
	d.SetContent(content)
	return d, nil
}

// line answers a connection with what it was asked for.
type line struct{}

// Connect implements [resource.Connecter].
func (line) Connect(_ context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = fmt.Fprintf(w, "%s %s %s %s\n", h.Method, r.Name, r.Verb, h.URL.RawQuery)
}
