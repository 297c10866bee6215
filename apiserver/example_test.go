// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// free is a strategy without rules.
type free struct{}

func (free) Default(resource.Object) ([]string, error)                           { return nil, nil }
func (free) Prepare(context.Context, resource.Object, resource.Object)           {}
func (free) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (free) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

// noteRules require a text.
type noteRules struct{ free }

func (noteRules) Validate(_ context.Context, obj, _ resource.Object) field.ErrorList {
	if text, _, _ := unstructured.NestedString(obj.(*resource.Doc).Content("text"), "text"); text == "" {
		return field.ErrorList{field.Required(field.NewPath("text"), "a note says something")}
	}
	return nil
}

// ask sends a request and prints the answer.
func ask(server *apiserver.Server, method, path, body string) {
	client := &http.Client{Transport: server.RoundTripper(&auth.User{Name: "ann", Groups: []string{auth.Masters}})}
	r, err := http.NewRequest(method, "https://steer.invalid"+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Kind, Message string
		Metadata      struct{ Name string }
		Items         []struct{ Metadata struct{ Name string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.TrimSpace(fmt.Sprintln(response.StatusCode, answer.Kind, answer.Metadata.Name, len(answer.Items), answer.Message)))
}

// A resource whose objects the server stores: its author writes the rules.
func Example_stored() {
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
	if err != nil {
		log.Fatal(err)
	}
	err = server.Install(&resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "notes", Singular: "note", Kind: "Note", ListKind: "NoteList", Namespaced: true},
		Storage:  resource.Storage{Bucket: "example.com/notes", Version: "v1"},
		Versions: []resource.Version{{Name: "v1", Strategy: noteRules{}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	const notes = "/apis/example.com/v1/namespaces/default/notes"
	ask(server, http.MethodPost, notes, `{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"milk"},"text":"buy milk"}`)
	ask(server, http.MethodPost, notes, `{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"empty"}}`)
	ask(server, http.MethodGet, notes, "")
	ask(server, http.MethodGet, notes+"/bread", "")
	// Output:
	// 201 Note milk 0
	// 422 Status  0 Note.example.com "empty" is invalid: text: Required value: a note says something
	// 200 NoteList  1
	// 404 Status  0 notes.example.com "bread" not found
}

// planets is a backend.
type planets []string

func (p planets) object(name string) resource.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Get implements [resource.Getter].
func (p planets) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	for _, name := range p {
		if name == r.Name {
			return p.object(name), nil
		}
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
}

// List implements [resource.Lister].
func (p planets) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	list := &resource.List{}
	for _, name := range p {
		list.Items = append(list.Items, p.object(name))
	}
	return list, nil
}

// A resource with a backend: it has the verbs that its Backend implements.
func Example_computed() {
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
	if err != nil {
		log.Fatal(err)
	}
	err = server.Install(&resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "planets", Singular: "planet", Kind: "Planet", ListKind: "PlanetList"},
		Versions: []resource.Version{{Name: "v1", Strategy: free{}}},
		Backend:  planets{"mercury", "venus", "earth"},
	})
	if err != nil {
		log.Fatal(err)
	}
	ask(server, http.MethodGet, "/apis/example.com/v1/planets/venus", "")
	ask(server, http.MethodGet, "/apis/example.com/v1/planets", "")
	ask(server, http.MethodDelete, "/apis/example.com/v1/planets/venus", "")
	// Output:
	// 200 Planet venus 0
	// 200 PlanetList  3
	// 405 Status  0 the server does not allow this method on the requested resource
}
