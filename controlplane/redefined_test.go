// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

const (
	firstSchema  = "{size: {type: integer}, old: {type: string}}"
	secondSchema = "{size: {type: integer}, colour: {type: string, default: red}}"
	redefine     = "spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: " + secondSchema + "}}}}}]}"
)

// schemaOf returns a definition of gadgets with the given properties of spec.
func schemaOf(properties string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: ` + properties + `}}}}}
`
}

const gadgets = "/apis/example.com/v1/namespaces/default/gadgets"

// meanwhile is admission that does something, once, when a write of a gadget has
// been found valid and is not stored yet.
type meanwhile struct{ do func() }

func (*meanwhile) Admit(context.Context, *resource.AdmissionRequest) error { return nil }

func (*meanwhile) Mutates(*resource.AdmissionRequest) bool { return false }

func (m *meanwhile) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	if do := m.do; do != nil && r.Resource.Plural == "gadgets" {
		m.do = nil
		do()
	}
	return nil
}

// after is a store that does something, once, when a definition has been stored
// and that is not served yet.
type after struct {
	*storage.Memory
	do func()
}

func (s *after) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	rec, err := s.Memory.Commit(ctx, w)
	if do := s.do; do != nil && err == nil && strings.HasSuffix(w.Key.Bucket, "/customresourcedefinitions") {
		s.do = nil
		do()
	}
	return rec, err
}

// redefinable returns a plane with a definition and a gadget named a.
func redefinable(t *testing.T) (*controlplane.Plane, *api, *meanwhile, *after) {
	t.Helper()
	m, s := &meanwhile{}, &after{Memory: storage.NewMemory(storage.MemoryOptions{})}
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true, Admission: m, Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop(context.Background()) })
	api := apiOf(t, plane.RESTConfig())
	api.must("POST", definitions, schemaOf(firstSchema))
	api.must("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a, finalizers: [example.com/f]}, spec: {size: 1, old: x}}")
	return plane, api, m, s
}

// gadgetWrites are writes of an object under the first schema, and what they come
// to under the second.
var gadgetWrites = map[string]struct {
	method, path, body string
	name               string
	want               map[string]any
}{
	"create": {"POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b}, spec: {size: 2, old: z}}", "b", map[string]any{"size": int64(2), "colour": "red"}},
	"update": {"PUT", gadgets + "/a", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 2, old: z}}", "a", map[string]any{"size": int64(2), "colour": "red"}},
	"patch":  {"PATCH", gadgets + "/a", "spec: {size: 2, old: z}", "a", map[string]any{"size": int64(2), "colour": "red"}},
	"mark":   {"DELETE", gadgets + "/a", "", "a", map[string]any{"size": int64(1), "colour": "red"}},
}

// underTheSecondSchema fails unless a write was answered, and is stored, as the
// second schema has it.
func underTheSecondSchema(t *testing.T, api *api, s *after, verb string) {
	t.Helper()
	w := gadgetWrites[verb]
	if w.method == http.MethodPut {
		w.body = strings.Replace(w.body, "name: a", "name: a, resourceVersion: '"+api.must("GET", gadgets+"/a", "").GetResourceVersion()+"'", 1)
	}
	answered := api.must(w.method, w.path, w.body)
	equal(t, "the answer", w.want, answered.Object["spec"])
	equal(t, "the object", w.want, api.must("GET", gadgets+"/"+w.name, "").Object["spec"])
	view, err := s.View(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	rec := view.Get(storage.Key{Bucket: "example.com/gadgets", Name: "default/" + w.name})
	if rec == nil || strings.Contains(string(rec.Value), `"old"`) || !strings.Contains(string(rec.Value), `"colour":"red"`) {
		t.Errorf("stored is %s", rec.Value)
	}
}

func TestWriteIsValidatedByADefinitionThatReplacesItsOwn(t *testing.T) {
	t.Parallel()
	for verb := range gadgetWrites {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			_, api, m, s := redefinable(t)
			m.do = func() { api.must("PATCH", definitions+"/gadgets.example.com", redefine) }
			underTheSecondSchema(t, api, s, verb)
		})
	}
}

func TestWriteIsValidatedByAStoredDefinitionBeforeItIsServed(t *testing.T) {
	t.Parallel()
	for verb := range gadgetWrites {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			_, api, _, s := redefinable(t)
			met := false
			s.do = func() {
				met = true
				underTheSecondSchema(t, api, s, verb)
			}
			api.must("PATCH", definitions+"/gadgets.example.com", redefine)
			if !met {
				t.Fatal("the definition was stored in another way")
			}
		})
	}
}

func TestWriteStoresNothingAfterItsDefinitionIsDeleted(t *testing.T) {
	t.Parallel()
	plane, api, m, _ := redefinable(t)
	api.must("PATCH", gadgets+"/a", "metadata: {finalizers: null}")
	m.do = func() {
		api.must("DELETE", definitions+"/gadgets.example.com", "")
		settle(t, plane)
	}
	if code, answer := api.do("POST", gadgets, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b}}"); code != http.StatusNotFound {
		t.Errorf("the write is answered with %d: %s", code, answer)
	}
	api.must("POST", definitions, schemaOf(firstSchema))
	equal(t, "objects of the next definition", []string(nil), api.names(gadgets))
}
