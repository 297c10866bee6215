// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testserver is a server of two kinds for the tests of package apiserver and of
// its parts: widgets are like a custom resource, ConfigMaps like a built-in one. It is a
// package because tests in several folders share it.
package testserver

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage/storagetest/teststore"
)

// Admin returns a user who is allowed everything.
func Admin() *auth.User {
	return &auth.User{Name: "admin", Groups: []string{auth.Masters, auth.Authenticated}}
}

// WidgetRules is the strategy of a custom resource with a status subresource: spec and
// status are kept, other fields are unknown; spec.size defaults to 1 and is at most 10.
type WidgetRules struct{ Status bool }

// content returns a copy.
func content(obj resource.Object) map[string]any { return obj.(*resource.Doc).Content() }

func setContent(obj resource.Object, content map[string]any) { obj.(*resource.Doc).SetContent(content) }

// Normalize implements [resource.Strategy].
func (WidgetRules) Default(obj resource.Object) (unknown []string, err error) {
	c := content(obj)
	for k := range c {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, k) {
			unknown = append(unknown, k)
			delete(c, k)
		}
	}
	slices.Sort(unknown)
	if spec, ok := c["spec"].(map[string]any); ok && spec["size"] == nil {
		spec["size"] = int64(1)
	}
	setContent(obj, c)
	return unknown, nil
}

// Prepare implements [resource.Strategy].
func (r WidgetRules) Prepare(_ context.Context, obj, old resource.Object) {
	d := obj.(*resource.Doc)
	if old == nil {
		d.SetContent(nil, "status")
		obj.SetGeneration(1)
		return
	}
	was := content(old)
	if r.Status {
		meta, status := obj.GetManagedFields(), d.Content("status")
		d.SetContent(was)
		d.SetContent(status, "status")
		obj.SetManagedFields(meta)
		return
	}
	d.SetContent(was, "status")
	if !equalJSON(content(obj)["spec"], was["spec"]) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

func equalJSON(a, b any) bool {
	x := unstructured.Unstructured{Object: map[string]any{"v": a}}
	y := unstructured.Unstructured{Object: map[string]any{"v": b}}
	p, _ := x.MarshalJSON()
	q, _ := y.MarshalJSON()
	return string(p) == string(q)
}

// Validate implements [resource.Strategy].
func (WidgetRules) Validate(_ context.Context, obj, _ resource.Object) field.ErrorList {
	size, _, _ := unstructured.NestedInt64(content(obj), "spec", "size")
	if size > 10 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), size, "should be less than or equal to 10")}
	}
	return nil
}

// Warnings implements [resource.Strategy].
func (WidgetRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

// WidgetScale reads and writes spec.size as the replica count.
type WidgetScale struct{}

// Replicas implements [resource.Scaler].
func (WidgetScale) Replicas(obj resource.Object) (spec, status int32, selector string, err error) {
	size, _, err := unstructured.NestedInt64(content(obj), "spec", "size")
	return int32(size), 0, "app=widget", err
}

// SetReplicas implements [resource.Scaler].
func (WidgetScale) SetReplicas(obj resource.Object, replicas int32) error {
	c := content(obj)
	err := unstructured.SetNestedField(c, int64(replicas), "spec", "size")
	setContent(obj, c)
	return err
}

// WidgetVersion returns a version of widgets.
func WidgetVersion(name string) resource.Version {
	kind := schema.GroupVersionKind{Group: "example.com", Version: name, Kind: "Widget"}
	types := apply.Deduced()
	return resource.Version{
		Name: name, Strategy: WidgetRules{},
		FieldManager: apply.New(apply.Endpoint{Kind: kind, Types: types}),
		Selectable:   []resource.SelectableField{{Path: "spec.colour", Keys: []string{"spec", "colour"}, Value: colourOf}},
		Subresources: []resource.Subresource{
			{Name: "status", Strategy: WidgetRules{Status: true}, FieldManager: apply.New(apply.Endpoint{Kind: kind, Types: types, Subresource: "status"})},
			{Name: "scale", Scale: WidgetScale{}},
		},
	}
}

func colourOf(obj resource.Object) string {
	s, _, _ := unstructured.NestedString(content(obj), "spec", "colour")
	return s
}

// Widgets returns the resource widgets.example.com in versions v1 and v2, stored as v1.
func Widgets() *resource.Resource {
	return &resource.Resource{
		Names: resource.Names{
			Group: "example.com", Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			ShortNames: []string{"wd"}, Categories: []string{"all"}, Namespaced: true,
		},
		Storage:  resource.Storage{Bucket: "example.com/widgets", Version: "v1"},
		Versions: []resource.Version{WidgetVersion("v1"), WidgetVersion("v2")},
	}
}

// ConfigRules is the strategy of a built-in kind without rules.
type ConfigRules struct{}

// Normalize implements [resource.Strategy].
func (ConfigRules) Default(resource.Object) ([]string, error) { return nil, nil }

// Prepare implements [resource.Strategy].
func (ConfigRules) Prepare(context.Context, resource.Object, resource.Object) {}

// Warnings implements [resource.Strategy].
func (ConfigRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

// Validate implements [resource.Strategy].
func (ConfigRules) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

// ConfigMaps returns the resource configmaps without rules.
func ConfigMaps() *resource.Resource {
	return &resource.Resource{
		Names:    resource.Names{Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ListKind: "ConfigMapList", Namespaced: true},
		Storage:  resource.Storage{Bucket: "configmaps", Version: "v1"},
		Versions: []resource.Version{{Name: "v1", New: func() resource.Object { return &corev1.ConfigMap{} }, Strategy: ConfigRules{}, StrategicMerge: true}},
		Update:   resource.UpdateRules{Unconditional: true},
	}
}

// New returns a server of widgets and ConfigMaps, stopped when the test ends, with its
// store. That is the one of [storagetest.New] unless edit sets another.
func New(t testing.TB, edit ...func(*apiserver.Options)) *apiserver.Server {
	t.Helper()
	options := apiserver.Options{Entropy: apiserver.SeededEntropy(1)}
	for _, e := range edit {
		e(&options)
	}
	if options.Store == nil {
		options.Store = teststore.New(t)
	}
	s, err := apiserver.New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*resource.Resource{Widgets(), ConfigMaps()} {
		if err := s.Install(r); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		_ = options.Store.Close()
	})
	return s
}

// Widget returns a widget in the namespace default.
func Widget(name string, edit ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"colour": "red"},
	}}
	for _, e := range edit {
		e(u)
	}
	return u
}
