// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/resource"
)

func TestVersionFindsItsPartsByName(t *testing.T) {
	t.Parallel()
	v := &resource.Version{
		Subresources: []resource.Subresource{{Name: "status"}, {Name: "scale"}},
		Selectable:   []resource.SelectableField{{Path: "spec.a", Keys: []string{"spec", "a"}}, {Path: "spec.b", Keys: []string{"spec", "b"}}},
	}
	for _, name := range []string{"status", "scale"} {
		if s := v.Subresource(name); s == nil || s.Name != name {
			t.Errorf("%s: %v", name, s)
		}
	}
	if v.Subresource("scale") != &v.Subresources[1] {
		t.Error("a subresource is a copy")
	}
	if s := v.Subresource("exec"); s != nil {
		t.Errorf("a subresource that it has not: %v", s)
	}
	if f, ok := v.SelectableField("spec.b"); !ok || f.Keys[1] != "b" {
		t.Errorf("spec.b: %v, %v", f, ok)
	}
	if f, ok := v.SelectableField("spec.c"); ok {
		t.Errorf("a field that it has not: %v", f)
	}
}

func TestVersionMakesEmptyObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v     resource.Version
		typed bool
		want  resource.Object
	}{
		"no Go type": {resource.Version{}, false, &resource.Doc{}},
		"typed":      {resource.Version{New: func() resource.Object { return &corev1.Pod{} }}, true, &corev1.Pod{}},
	} {
		if diff := cmp.Diff(c.want, c.v.NewObject()); diff != "" || c.v.Typed() != c.typed {
			t.Errorf("%s: typed %v (-want +got):\n%s", name, c.v.Typed(), diff)
		}
	}
}

func TestEncodeObjectIsReadAsItWas(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "<c>"}},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
	text, err := resource.EncodeObject(pod)
	if err != nil {
		t.Fatal(err)
	}
	got := &corev1.Pod{}
	if !resource.ReadStored(text, got) {
		t.Fatalf("a pod is not read: %s", text)
	}
	if diff := cmp.Diff(pod, got); diff != "" {
		t.Errorf("a pod (-want +got):\n%s", diff)
	}

	text = []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"n":1}}`)
	d, err := resource.ParseDoc(text)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := resource.EncodeObject(d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(encoded)); diff != "" {
		t.Errorf("a widget (-want +got):\n%s", diff)
	}
}

func TestParseDocReadsAnyNotation(t *testing.T) {
	t.Parallel()
	want := map[string]any{"kind": "Widget", "spec": map[string]any{"b": "é", "a": int64(1)}, "half": 0.5}
	for name, text := range map[string]string{
		"compact":      `{"kind":"Widget","spec":{"a":1,"b":"é"},"half":0.5}`,
		"with space":   "{ \"kind\" : \"Widget\",\n\t\"spec\": {\"a\": 1, \"b\": \"é\"}, \"half\": 0.5 }",
		"with escapes": `{"kind":"Widget","spec":{"b":"\u00e9","a":1},"half":5e-1}`,
	} {
		d, err := resource.ParseDoc([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, d.Content()); diff != "" || !d.Equal(resource.NewDoc(want)) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, text := range []string{``, `{`, `[]`, `{"a":}`} {
		if content, err := resource.ParseDoc([]byte(text)); err == nil {
			t.Errorf("%q is decoded as %v", text, content)
		}
	}
}

// TestDocHasOneDoorToMaps: a Doc has no map that could be used without being decoded, and
// nothing takes it for an unstructured object.
func TestDocHasOneDoorToMaps(t *testing.T) {
	t.Parallel()
	doc := reflect.TypeFor[*resource.Doc]()
	for i := range doc.Elem().NumField() {
		if field := doc.Elem().Field(i); field.IsExported() {
			t.Errorf("the field %s can be used without Content", field.Name)
		}
	}
	for i := range doc.NumMethod() {
		method := doc.Method(i)
		for j := range method.Type.NumOut() {
			out := method.Type.Out(j)
			opens := out == reflect.TypeFor[any]() || out.Kind() == reflect.Map && out != reflect.TypeFor[map[string]string]()
			if opens && method.Name != "Content" {
				t.Errorf("%s returns a %v beside Content", method.Name, out)
			}
		}
	}
	var obj any = &resource.Doc{}
	if _, is := obj.(runtime.Unstructured); is {
		t.Error("libraries take a Doc for an unstructured object")
	}
}
