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
// columns, a short name, field selectors, watches and OpenAPI.
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
	// To listen: server.HTTPServer().Serve(listener)

	send(server, "POST", "", `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "milk"}, "spec": {"text": "buy milk"}}`)
	send(server, "PATCH", "/milk", `{"spec": {"colour": "red", "text": "buy milk and bread"}}`)
	send(server, "PATCH", "/milk", `{"spec": {"text": "buy"}}`)
	send(server, "GET", "?fieldSelector=spec.colour%3Dyellow", "")
	// Output:
	// 201 milk {Text:buy milk Colour:yellow}
	// 422 Note.example.com "milk" is invalid: spec: Invalid value: red notes are short
	// 422 Note.example.com "milk" is invalid: spec.text: Forbidden: notes only grow
	// 200 milk {Text:buy milk Colour:yellow}
}

// send sends a request for notes and prints the notes in the answer, or the error.
func send(server *apiserver.Server, method, path, body string) {
	r, err := http.NewRequest(method, "https://in-process/apis/example.com/v1/namespaces/default/notes"+path, strings.NewReader(body))
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
