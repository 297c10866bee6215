// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservertest

import (
	"net/http"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// views are the contract of the status and the scale of an object.
func views() []check {
	return []check{
		{"the status is written by its subresource alone", []string{"create", "get"}, func(s *tester) {
			if !s.viewed("status") || s.Status == nil {
				return
			}
			made := s.create("a")
			status := func(obj *unstructured.Unstructured) {
				s.Helper()
				if got := obj.Object["status"]; !reflect.DeepEqual(got, plain(s.Status())) {
					s.Errorf("the status is %v, want %v", got, s.Status())
				}
			}
			wished := made.DeepCopy()
			wished.Object["status"] = s.Status()
			wished.SetLabels(map[string]string{"apiservertest": "changed"})
			written := s.must(http.StatusOK, http.MethodPut, s.path("default", "/a/status"), wished)
			status(written)
			if written.GetLabels()["apiservertest"] != "a" || written.GetGeneration() != made.GetGeneration() {
				s.Errorf("a write of the status has changed the object: %v", written.Object["metadata"])
			}
			s.must(http.StatusConflict, http.MethodPut, s.path("default", "/a/status"), wished)
			status(s.must(http.StatusOK, http.MethodGet, s.path("default", "/a/status"), nil))
			status(s.must(http.StatusOK, http.MethodPatch, s.path("default", "/a"), map[string]any{"status": nil}))
			status(s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil))
			s.must(http.StatusNotFound, http.MethodGet, s.path("default", "/absent/status"), nil)
		}},
		{"the scale is that of the object", []string{"create", "get"}, func(s *tester) {
			if !s.viewed("scale") {
				return
			}
			made := s.create("a")
			replicas := func(scale *unstructured.Unstructured, want int64) {
				s.Helper()
				got, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas") // 0 if it is none
				if got != want || scale.GetKind() != "Scale" || scale.GetUID() != made.GetUID() {
					s.Errorf("want %d replicas: %v", want, scale.Object)
				}
			}
			path := s.path("default", "/a/scale")
			first := s.must(http.StatusOK, http.MethodPatch, path, map[string]any{"spec": map[string]any{"replicas": 3}})
			replicas(first, 3)
			s.must(http.StatusOK, http.MethodPatch, path, map[string]any{"spec": map[string]any{"replicas": 4}})
			s.must(http.StatusConflict, http.MethodPut, path, first)
			replicas(s.must(http.StatusOK, http.MethodGet, path, nil), 4)
			s.must(http.StatusNotFound, http.MethodGet, s.path("default", "/absent/scale"), nil)
			if read := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil); read.GetResourceVersion() == made.GetResourceVersion() {
				s.Error("the object has its old resourceVersion")
			}
		}},
	}
}

// viewed reports whether the resource has a subresource that is read and written.
func (s *tester) viewed(name string) bool {
	verbs := s.below[name]
	return slices.Contains(verbs, "get") && slices.Contains(verbs, "update") && slices.Contains(verbs, "patch")
}

// plain returns content as it is after it was sent and received.
func plain(content map[string]any) any {
	text, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "Any", "content": content}}).MarshalJSON()
	if err != nil {
		return err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		return err
	}
	return out.Object["content"]
}
