// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

var (
	admin   = &auth.User{Name: "admin", Groups: []string{auth.Masters, auth.Authenticated}}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// widgetRules is the strategy of a custom resource with a status subresource: spec and
// status are kept, other fields are unknown; spec.size defaults to 1 and is at most 10.
type widgetRules struct{ status bool }

func content(obj resource.Object) map[string]any { return obj.(*unstructured.Unstructured).Object }

func (widgetRules) Normalize(obj resource.Object) (unknown []string, err error) {
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
	return unknown, nil
}

func (r widgetRules) Prepare(_ context.Context, obj, old resource.Object) {
	c := content(obj)
	if old == nil {
		delete(c, "status")
		obj.SetGeneration(1)
		return
	}
	was := content(old)
	if r.status {
		meta := obj.GetManagedFields()
		status := c["status"]
		for k := range c {
			delete(c, k)
		}
		for k, v := range (old.DeepCopyObject().(*unstructured.Unstructured)).Object {
			c[k] = v
		}
		c["status"] = status
		obj.SetManagedFields(meta)
		return
	}
	delete(c, "status")
	if status, ok := was["status"]; ok {
		c["status"] = status
	}
	if !equalJSON(c["spec"], was["spec"]) {
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

func (widgetRules) Validate(_ context.Context, obj, _ resource.Object) field.ErrorList {
	size, _, _ := unstructured.NestedInt64(content(obj), "spec", "size")
	if size > 10 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), size, "should be less than or equal to 10")}
	}
	return nil
}

func (widgetRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

type widgetScale struct{}

func (widgetScale) Replicas(obj resource.Object) (spec, status int32, selector string, err error) {
	size, _, err := unstructured.NestedInt64(content(obj), "spec", "size")
	return int32(size), 0, "app=widget", err
}

func (widgetScale) SetReplicas(obj resource.Object, replicas int32) error {
	return unstructured.SetNestedField(content(obj), int64(replicas), "spec", "size")
}

func widgetVersion(name string) resource.Version {
	kind := schema.GroupVersionKind{Group: "example.com", Version: name, Kind: "Widget"}
	types := apply.Deduced()
	return resource.Version{
		Name: name, Strategy: widgetRules{},
		Ownership:  apply.New(apply.Endpoint{Kind: kind, Types: types}),
		Selectable: []resource.SelectableField{{Path: "spec.colour", Keys: []string{"spec", "colour"}, Value: colourOf}},
		Subresources: []resource.Subresource{
			{Name: "status", Strategy: widgetRules{status: true}, Ownership: apply.New(apply.Endpoint{Kind: kind, Types: types, Subresource: "status"})},
			{Name: "scale", Scale: widgetScale{}},
		},
	}
}

func colourOf(obj resource.Object) string {
	s, _, _ := unstructured.NestedString(content(obj), "spec", "colour")
	return s
}

func widgetResource() *resource.Resource {
	return &resource.Resource{
		Names: resource.Names{
			Group: "example.com", Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			ShortNames: []string{"wd"}, Categories: []string{"all"}, Namespaced: true,
		},
		Storage:  resource.Storage{Bucket: "example.com/widgets", Version: "v1"},
		Versions: []resource.Version{widgetVersion("v1"), widgetVersion("v2")},
	}
}

// configRules is the strategy of a built-in kind without rules.
type configRules struct{}

func (configRules) Normalize(resource.Object) ([]string, error)                         { return nil, nil }
func (configRules) Prepare(context.Context, resource.Object, resource.Object)           {}
func (configRules) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (configRules) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

func configMapResource() *resource.Resource {
	return &resource.Resource{
		Names:    resource.Names{Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ListKind: "ConfigMapList", Namespaced: true},
		Storage:  resource.Storage{Bucket: "configmaps", Version: "v1"},
		Versions: []resource.Version{{Name: "v1", New: func() resource.Object { return &corev1.ConfigMap{} }, Strategy: configRules{}, StrategicMerge: true}},
		Update:   resource.UpdateRules{Unconditional: true},
	}
}

// newServer serves widgets and config maps from memory.
func newServer(t testing.TB, edit ...func(*apiserver.Options)) *apiserver.Server {
	t.Helper()
	options := apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Entropy: apiserver.SeededEntropy(1)}
	for _, e := range edit {
		e(&options)
	}
	s, err := apiserver.New(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*resource.Resource{widgetResource(), configMapResource()} {
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

func config(s *apiserver.Server) *rest.Config {
	return &rest.Config{Host: "https://steer.invalid", Transport: s.RoundTripper(admin), QPS: -1}
}

func dynamicClient(t testing.TB, s *apiserver.Server) dynamic.Interface {
	t.Helper()
	return dynamicFor(t, config(s))
}

func dynamicFor(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func widget(name string, edit ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
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
