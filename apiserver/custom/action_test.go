// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Shout asks for the text of a note in capitals.
type Shout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Times is how often.
	Times int `json:"times"`
}

func (s *Shout) DeepCopyObject() runtime.Object {
	out := *s
	return &out
}

// Echo is the answer.
type Echo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Text              string `json:"text"`
}

func (e *Echo) DeepCopyObject() runtime.Object {
	out := *e
	return &out
}

func TestActionHasRequestAndResponseTypesOfItsOwn(t *testing.T) {
	t.Parallel()
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Authorizer: auth.AllowAll{}})
	if err != nil {
		t.Fatal(err)
	}
	shout := custom.Action("shout", schema.GroupVersion{Group: "example.com", Version: "v1"}, func(_ context.Context, note *Note, in *Shout) (*Echo, error) {
		if in.Times == 0 {
			return nil, errors.New("a note is shouted at least once")
		}
		note.Spec.Text = strings.ToUpper(note.Spec.Text)
		return &Echo{Text: strings.Repeat(note.Spec.Text, in.Times)}, nil
	})
	notes, err := custom.Kind[*Note]{Definition: definition, Subresources: []resource.Subresource{shout}}.Resource()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(notes); err != nil {
		t.Fatal(err)
	}
	request := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "https://in-process"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.RoundTripper(&auth.User{Name: "ann"}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	const path = "/apis/example.com/v1/namespaces/default/notes"
	body := func(rest string) string { return `{"apiVersion": "example.com/v1", "kind": "Shout"` + rest + `}` }
	if code, text := request("POST", path, `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "milk"}, "spec": {"text": "milk"}}`); code != http.StatusCreated {
		t.Fatal(code, text)
	}
	for _, step := range []struct {
		name, method, path, body string
		code                     int
		want                     string
	}{
		{"a dry run", "POST", path + "/milk/shout?dryRun=All", body(`, "times": 1`), 201, `"text":"MILK"`},
		{"which stores nothing", "GET", path + "/milk", "", 200, `"text":"milk"`},
		{"an answer", "POST", path + "/milk/shout", body(`, "times": 2`), 201, `{"kind":"Echo","apiVersion":"example.com/v1","metadata":{},"text":"MILKMILK"}`},
		{"the change is stored", "GET", path + "/milk", "", 200, `"text":"MILK"`},
		{"a refusal", "POST", path + "/milk/shout", body(""), 409, "a note is shouted at least once"},
		{"another kind", "POST", path + "/milk/shout", `{"apiVersion": "example.com/v1", "kind": "Echo"}`, 400, "Echo"},
		{"another name", "POST", path + "/milk/shout", body(`, "metadata": {"name": "bread"}, "times": 1`), 400, "name in URL does not match"},
		{"an old state", "POST", path + "/milk/shout", body(`, "metadata": {"resourceVersion": "1"}, "times": 1`), 409, "Precondition failed: ResourceVersion in precondition: 1"},
		{"no object", "POST", path + "/bread/shout", body(`, "times": 1`), 404, "not found"},
		{"another verb", "GET", path + "/milk/shout", "", 405, ""},
		{"discovery", "GET", "/apis/example.com/v1", "", 200, `{"name":"notes/shout","singularName":"","namespaced":true,"kind":"Shout","verbs":["create"]}`},
		{"the type of the body", "GET", "/openapi/v3/apis/example.com/v1", "", 200, `"times"`},
		{"the type of the answer", "GET", "/openapi/v3/apis/example.com/v1", "", 200, `{"group":"example.com","kind":"Echo","version":"v1"}`},
	} {
		if code, text := request(step.method, step.path, step.body); code != step.code || !strings.Contains(text, step.want) {
			t.Errorf("%s: %d %.2000s, want %d %s", step.name, code, text, step.code, step.want)
		}
	}
}
