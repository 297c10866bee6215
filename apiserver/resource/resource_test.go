// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

type noRules struct{}

func (noRules) Default(resource.Object) ([]string, error)                           { return nil, nil }
func (noRules) Prepare(context.Context, resource.Object, resource.Object)           {}
func (noRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (noRules) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

func widgets() *resource.Resource {
	return &resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		Storage:  resource.Storage{Bucket: "example.com/widgets", Version: "v1"},
		Versions: []resource.Version{{Name: "v1", Strategy: noRules{}, Subresources: []resource.Subresource{{Name: "status", Strategy: noRules{}}}}, {Name: "v2", Strategy: noRules{}}},
	}
}

func TestCheckRefusesIncompleteResources(t *testing.T) {
	t.Parallel()
	if err := widgets().Check(); err != nil {
		t.Fatal(err)
	}
	for want, edit := range map[string]func(*resource.Resource){
		"Plural, Singular, Kind and ListKind are required": func(r *resource.Resource) { r.Singular = "" },
		"it has no versions":                                  func(r *resource.Resource) { r.Versions = nil },
		"Storage.Bucket is required without a Backend":        func(r *resource.Resource) { r.Storage.Bucket = "" },
		"of Storage.Alias are required":                       func(r *resource.Resource) { r.Storage.Alias = &resource.Alias{} },
		"version v2 has no Strategy":                          func(r *resource.Resource) { r.Versions[1].Strategy = nil },
		"version v1 is listed twice":                          func(r *resource.Resource) { r.Versions[1].Name = "v1" },
		`the storage version "v3" is not one of its versions`: func(r *resource.Resource) { r.Storage.Version = "v3" },
	} {
		r := widgets()
		edit(r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// reads is a backend that reads; *writes is one that writes, too.
type (
	reads  struct{}
	writes struct{ reads }
)

func (reads) Get(context.Context, *resource.Request) (resource.Object, error) { return nil, nil } // it is not called

func (*writes) Update(context.Context, *resource.Request, func(resource.Object) (resource.Object, error), *metav1.UpdateOptions) (resource.Object, error) {
	return nil, nil // it is not called
}

// scaler is a [resource.Scaler].
type scaler struct{ resource.Scaler }

func TestCheckRefusesSubresourcesAndBackendsThatCannotWork(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Paint"}
	act := func(context.Context, resource.Object, resource.Object) (resource.Object, error) { return nil, nil } // it is not called
	with := func(subs ...resource.Subresource) func(*resource.Resource) {
		return func(r *resource.Resource) { r.Versions[0].Subresources = subs }
	}
	for _, c := range []struct {
		want string // "" for none
		edit func(*resource.Resource)
	}{
		{"", with(resource.Subresource{Name: "paint", Action: act, Kind: kind, Strategy: noRules{}}, resource.Subresource{Name: "scale", Scale: scaler{}})},
		{"", func(r *resource.Resource) { r.Backend = &writes{} }},
		{"", func(r *resource.Resource) { r.Backend = struct{}{} }}, // all is in its subresource
		{`the name "" of a subresource is empty or taken`, with(resource.Subresource{Strategy: noRules{}})},
		{`the name "a" of a subresource is empty or taken`, with(resource.Subresource{Name: "a", Strategy: noRules{}}, resource.Subresource{Name: "a", Strategy: noRules{}})},
		{"subresource a: exactly one of", with(resource.Subresource{Name: "a"})},
		{"subresource a: exactly one of", with(resource.Subresource{Name: "a", Scale: scaler{}, Action: act, Kind: kind})},
		{"subresource a: exactly one of", with(resource.Subresource{Name: "a", Scale: scaler{}, Strategy: noRules{}})},
		{"subresource a: the Kind of its bodies is required", with(resource.Subresource{Name: "a", Action: act})},
		{"subresource a: the Kind of its bodies is required", with(resource.Subresource{Name: "a", Backend: reads{}})},
		{"subresource a: its Backend is a struct {}, which has the method of no capability", with(resource.Subresource{Name: "a", Backend: struct{}{}, Kind: kind})},
		{"the Backend of the resource is no Updater", func(r *resource.Resource) {
			r.Backend = reads{}
			with(resource.Subresource{Name: "a", Action: act, Kind: kind})(r)
		}},
		{"Backend is a struct {}, which has the method of no capability", func(r *resource.Resource) {
			r.Backend = struct{}{}
			with()(r)
		}},
		{`the storage version "" is not one of its versions`, func(r *resource.Resource) { r.Backend, r.Storage.Version = reads{}, "" }},
		{"NoDeleteCollection has no effect", func(r *resource.Resource) { r.Backend, r.Deletion.NoDeleteCollection = reads{}, true }},
		{"Propagation, PropagationWarning", func(r *resource.Resource) { r.Backend, r.Deletion.PropagationWarning = reads{}, "x" }},
		{"Grace, Mark and Holds", func(r *resource.Resource) { r.Backend, r.Deletion.Mark = reads{}, func(resource.Object) {} }},
	} {
		r := widgets()
		c.edit(r)
		if err := r.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

// onlyPointer has its methods on the pointer.
type onlyPointer struct{}

func (*onlyPointer) Get(context.Context, *resource.Request) (resource.Object, error) { return nil, nil } // it is not called

func TestCheckNamesABackendWhoseMethodsBelongToThePointer(t *testing.T) {
	t.Parallel()
	r := widgets()
	r.Backend = onlyPointer{}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "pass a *resource_test.onlyPointer") {
		t.Errorf("error %v", err)
	}
}

func TestViewsHaveTheVerbsOfTheBackend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backend any
		want    string
	}{
		{reads{}, "[status [get] scale [get]]"},
		{&writes{}, "[status [get patch update] scale [get]]"},
		{struct{}{}, "[]"},
		{nil, "[status [] scale [get]]"},
	} {
		r := widgets()
		r.Backend = c.backend
		r.Versions[0].Subresources = append(r.Versions[0].Subresources, resource.Subresource{Name: "scale", Scale: scaler{}, Verbs: []string{"get"}})
		got := []any{}
		for _, s := range r.Viewed().Versions[0].Subresources {
			got = append(got, s.Name, s.Verbs)
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%T: %s, want %s", c.backend, text, c.want)
		}
	}
}

func TestChangedLeavesTheOriginalUnchanged(t *testing.T) {
	t.Parallel()
	r := widgets()
	changed := r.Changed(func(v *resource.Version) {
		v.Deprecation = "old"
		v.Subresources = append(v.Subresources, resource.Subresource{Name: "scale"})
		v.Subresources[0].Name = "other"
	})
	if r.Versions[0].Deprecation != "" || len(r.Versions[0].Subresources) != 1 || r.Versions[0].Subresources[0].Name != "status" {
		t.Errorf("the original has %+v", r.Versions[0])
	}
	if changed.Versions[1].Deprecation != "old" || changed.Versions[0].Subresources[0].Name == "status" {
		t.Errorf("the copy has %+v", changed.Versions)
	}
}

// plugin records its calls.
type plugin struct {
	name  string
	fails bool
	calls *[]string
}

func (p plugin) call(pass string) error {
	*p.calls = append(*p.calls, pass+" "+p.name)
	if p.fails {
		return errors.New(p.name)
	}
	return nil
}

func (p plugin) Admit(context.Context, *resource.AdmissionRequest) error { return p.call("admit") }
func (p plugin) Validate(context.Context, *resource.AdmissionRequest) error {
	return p.call("validate")
}

// reader is a plugin that changes nothing.
type reader struct{ plugin }

func (reader) Mutates(*resource.AdmissionRequest) bool { return false }

func TestAdmissionsRunInOrderUntilOneRefuses(t *testing.T) {
	t.Parallel()
	var calls []string
	chain := resource.Admissions{plugin{"a", false, &calls}, plugin{"b", true, &calls}, plugin{"c", false, &calls}}
	if err := chain.Admit(t.Context(), &resource.AdmissionRequest{}); err == nil || err.Error() != "b" {
		t.Errorf("admit: %v", err)
	}
	if err := chain.Validate(t.Context(), &resource.AdmissionRequest{}); err == nil || err.Error() != "b" {
		t.Errorf("validate: %v", err)
	}
	if want := []string{"admit a", "admit b", "validate a", "validate b"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestMutatesIsTrueUnlessEveryAdmissionDeniesIt(t *testing.T) {
	t.Parallel()
	r := &resource.AdmissionRequest{Request: &resource.Request{Resource: widgets()}}
	for name, c := range map[string]struct {
		chain resource.Admissions
		want  bool
	}{
		"none":                    {nil, false},
		"a reader":                {resource.Admissions{reader{}}, false},
		"unknown":                 {resource.Admissions{reader{}, plugin{}}, true},
		"unknown, of others":      {resource.Admissions{resource.Restrict(plugin{}, "pods")}, false},
		"unknown, of widgets too": {resource.Admissions{resource.Restrict(plugin{}, "pods", "widgets.example.com")}, true},
	} {
		if got := resource.Mutates(c.chain, r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRestrictSkipsOtherResources(t *testing.T) {
	t.Parallel()
	var calls []string
	of := func(name string, to ...string) resource.Admission {
		return resource.Restrict(plugin{name, false, &calls}, to...)
	}
	chain := resource.Admissions{of("pods", "pods"), of("widgets", "widgets.example.com"), plugin{"all", false, &calls}}
	r := &resource.AdmissionRequest{Request: &resource.Request{Resource: widgets()}}
	want := []string{"admit widgets", "admit all", "validate widgets", "validate all"}
	for _, a := range []resource.Admission{chain, resource.ForResource(chain, r.Resource)} {
		calls = nil
		if err := errors.Join(a.Admit(t.Context(), r), a.Validate(t.Context(), r)); err != nil || !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q: %v", calls, want, err)
		}
	}
	if a := resource.ForResource(resource.Admissions{of("pods", "pods")}, r.Resource); a != nil {
		t.Errorf("an admission of other resources handles widgets: %v", a)
	}
}

func TestWarningsAreKeptOnceAndInOrder(t *testing.T) {
	t.Parallel()
	r := &resource.Request{Warnings: &resource.Warnings{}}
	for _, text := range []string{"b", "a", "b"} {
		r.Warn(text)
	}
	if got := r.Warnings.Texts(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("warnings %q", got)
	}
	(&resource.Request{}).Warn("dropped")
}
