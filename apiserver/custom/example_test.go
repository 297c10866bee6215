// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/storage"
)

// Note is an API type as operators have them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=nt,categories=all
// +kubebuilder:printcolumn:name=Text,type=string,JSONPath=`.spec.text`
// +kubebuilder:selectablefield:JSONPath=`.spec.colour`
type Note struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NoteSpec `json:"spec"`
}

// +kubebuilder:validation:XValidation:rule="self.colour != 'red' || self.text.size() < 10",message="red notes are short"
type NoteSpec struct {
	// +kubebuilder:validation:MaxLength=100
	Text string `json:"text"`
	// +kubebuilder:default=yellow
	Colour string `json:"colour,omitempty"`
}

// DeepCopyObject is one of the functions that `steer generate` writes.
func (n *Note) DeepCopyObject() runtime.Object {
	out := *n
	n.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

//go:embed testdata/example.com_notes.yaml
var definition []byte // written by `steer generate`

// validate is a rule that a schema cannot have.
func validate(_ context.Context, note, old *Note) field.ErrorList {
	if old != nil && len(note.Spec.Text) < len(old.Spec.Text) {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "text"), "notes only grow")}
	}
	return nil
}

// The smallest server: one kind from a Go type, with defaults, rules in CEL and in Go,
// a column, a short name, field selectors, watches, tables and OpenAPI.
func Example() {
	server, err := apiserver.New(apiserver.Options{
		Store:      storage.NewMemory(storage.MemoryOptions{}),
		Authorizer: auth.AllowAll{},
	})
	if err != nil {
		log.Fatal(err)
	}
	notes, err := custom.Kind[*Note]{Definition: definition, Rules: custom.Rules[*Note]{Validate: validate}}.Resource()
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		log.Fatal(err)
	}
	// To listen: server.HTTPServer().Serve(server.Bound(listener))

	send(server, "POST", "", `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "milk"}, "spec": {"text": "buy milk"}}`)
	send(server, "PATCH", "/milk", `{"spec": {"colour": "red", "text": "buy milk and bread"}}`)
	send(server, "PATCH", "/milk", `{"spec": {"text": "buy"}}`)
	send(server, "GET", "?fieldSelector=spec.colour%3Dyellow", "")

	var event struct {
		Type   string
		Object Note
	}
	read(server, path+"?watch=true", "application/json", &event) // its first event
	fmt.Println("watch:", event.Type, event.Object.Name, event.Object.Spec.Text)
	var table metav1.Table
	read(server, path, "application/json;as=Table;g=meta.k8s.io;v=v1", &table) // as kubectl asks
	fmt.Println("table:", table.ColumnDefinitions[0].Name, table.ColumnDefinitions[1].Name, table.Rows[0].Cells)
	var described struct {
		Components struct{ Schemas map[string]spec.Schema }
	}
	read(server, "/openapi/v3/apis/example.com/v1", "application/json", &described)
	colour := described.Components.Schemas["com.example.v1.Note"].Properties["spec"].Properties["colour"]
	fmt.Println("OpenAPI: a colour is a", colour.Type, "and by default", colour.Default)
	// Output:
	// 201 milk {Text:buy milk Colour:yellow}
	// 422 Note.example.com "milk" is invalid: spec: Invalid value: red notes are short
	// 422 Note.example.com "milk" is invalid: spec.text: Forbidden: notes only grow
	// 200 milk {Text:buy milk Colour:yellow}
	// watch: ADDED milk buy milk
	// table: Name Text [milk buy milk]
	// OpenAPI: a colour is a [string] and by default yellow
}

// path of the notes.
const path = "/apis/example.com/v1/namespaces/default/notes"

// read decodes the first JSON value of an answer.
func read(server *apiserver.Server, path, accept string, into any) {
	r, err := http.NewRequest(http.MethodGet, "https://in-process"+path, http.NoBody)
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	answer, err := server.RoundTripper(&auth.User{Name: "ann"}).RoundTrip(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		log.Fatal(err)
	}
}

// send sends a request for notes and prints the notes in the answer, or the error.
func send(server *apiserver.Server, method, below, body string) {
	r, err := http.NewRequest(method, "https://in-process"+path+below, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
	answer, err := server.RoundTripper(&auth.User{Name: "ann"}).RoundTrip(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	var found struct {
		Note
		Items   []Note
		Message string
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		log.Fatal(err)
	}
	for _, note := range append(found.Items, found.Note) {
		if note.Name != "" {
			fmt.Printf("%d %s %+v\n", answer.StatusCode, note.Name, note.Spec)
		}
	}
	if found.Message != "" {
		fmt.Println(answer.StatusCode, found.Message)
	}
}
