// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

type noRules struct{}

func (noRules) Normalize(resource.Object) ([]string, error)                         { return nil, nil }
func (noRules) Prepare(context.Context, resource.Object, resource.Object)           {}
func (noRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (noRules) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

func widgets() *resource.Resource {
	return &resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		Storage:  resource.Storage{Bucket: "example.com/widgets", Version: "v1"},
		Versions: []resource.Version{{Name: "v1", Strategy: noRules{}, Subresources: []resource.Subresource{{Name: "status"}}}, {Name: "v2", Strategy: noRules{}}},
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

func TestRawMembersDecodeToWhatWasEncoded(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"list": []any{"x", int64(1), nil}}, "fraction": 1.0,
	}}
	want := u.DeepCopy()
	resource.EncodeMembers(u.Object)
	if _, raw := u.Object["spec"].(resource.RawValue); !raw {
		t.Fatalf("spec is %T", u.Object["spec"])
	}
	if _, raw := u.Object["fraction"].(resource.RawValue); raw {
		t.Error("a fraction that would be decoded as an integer is raw")
	}
	if !resource.Equal(u.Object, want.Object) || !resource.Equal(resource.DecodedMembers(u.Object), want.Object) {
		t.Errorf("raw members differ: %v", u.Object)
	}
	if _, raw := u.Object["spec"].(resource.RawValue); !raw {
		t.Error("DecodedMembers changes its argument")
	}
	resource.DecodeObject(u)
	if _, decoded := u.Object["spec"].(map[string]any); !decoded || !resource.Equal(u.Object, want.Object) {
		t.Errorf("decoded as %v", u.Object)
	}
}
