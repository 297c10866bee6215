// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservertest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reads are the contract of get and list.
func reads() []check { //nolint:funlen // a table of checks
	return []check{
		{"what is not there is a 404", []string{"get"}, func(s *tester) {
			s.must(http.StatusNotFound, http.MethodGet, s.path("default", "/absent"), nil)
		}},
		{"what is there is read and listed", []string{"get", "list"}, func(s *tester) {
			want := slices.Clone(s.Have)
			if slices.Contains(s.verbs, "create") {
				want = []string{"a", "b"}
				s.create("a")
				s.create("b")
			}
			for _, name := range want {
				if got := s.must(http.StatusOK, http.MethodGet, s.path("default", "/"+name), nil); got.GetName() != name || got.GetKind() != s.kind {
					s.Errorf("get %s: %s %s", name, got.GetKind(), got.GetName())
				}
			}
			slices.Sort(want)
			items, _ := s.list(s.path("default", ""))
			if got := names(items); !slices.Equal(got, want) {
				s.Errorf("list: %v, want %v", got, want)
			}
			if len(want) == 0 {
				return
			}
			items, _ = s.list(s.path("default", "?fieldSelector=metadata.name%3D"+want[0]))
			if got := names(items); !slices.Equal(got, want[:1]) {
				s.Errorf("selected by name: %v, want %v", got, want[:1])
			}
		}},
		{"lists are of one namespace, or of all", []string{"create", "list"}, func(s *tester) {
			if !s.namespaced {
				return
			}
			s.create("a")
			s.must(http.StatusCreated, http.MethodPost, s.path("other", ""), s.object("other", "b"))
			for namespace, want := range map[string][]string{"default": {"a"}, "other": {"b"}, "": {"a", "b"}, "empty": {}} {
				items, _ := s.list(s.path(namespace, ""))
				if got := names(items); !slices.Equal(got, want) {
					s.Errorf("namespace %q: %v, want %v", namespace, got, want)
				}
			}
		}},
		{"an object is in its namespace alone", []string{"get", "list"}, func(s *tester) {
			want := slices.Sorted(slices.Values(s.Have))
			if s.has("create") {
				want = []string{"a"}
				s.create("a")
			}
			if !s.namespaced || len(want) == 0 {
				return
			}
			for namespace, want := range map[string][]string{"": want, "default": want, "apiservertest": {}} {
				items, _ := s.list(s.path(namespace, ""))
				if got := names(items); !slices.Equal(got, want) {
					s.Errorf("namespace %q: %v, want %v", namespace, got, want)
				}
			}
			s.must(http.StatusOK, http.MethodGet, s.path("default", "/"+want[0]), nil)
			s.must(http.StatusNotFound, http.MethodGet, s.path("apiservertest", "/"+want[0]), nil)
		}},
		{"lists are selected by labels", []string{"create", "list"}, func(s *tester) {
			for _, name := range []string{"a", "b", "c"} {
				s.create(name)
			}
			items, _ := s.list(s.path("default", "?labelSelector="+url.QueryEscape("apiservertest in (a,c)")))
			if got := names(items); !slices.Equal(got, []string{"a", "c"}) {
				s.Errorf("selected: %v", got)
			}
		}},
		{"pages have every object once", []string{"create", "list"}, func(s *tester) {
			want := []string{}
			for i := range 7 {
				name := fmt.Sprintf("n%d", i)
				s.create(name)
				want = append(want, name)
			}
			var got []string
			for next := ""; ; {
				page := s.must(http.StatusOK, http.MethodGet, s.path("default", "?limit=3&continue="+url.QueryEscape(next)), nil)
				items, _, _ := unstructured.NestedSlice(page.Object, "items")
				for _, item := range items {
					u := unstructured.Unstructured{Object: item.(map[string]any)}
					got = append(got, u.GetName())
				}
				if next, _, _ = unstructured.NestedString(page.Object, "metadata", "continue"); next == "" {
					break
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				s.Errorf("pages: %v, want %v", got, want)
			}
		}},
	}
}

// writes are the contract of create, update and patch.
func writes() []check { //nolint:funlen // a table of checks
	return []check{
		{"a new object has a uid, a time and a revision, and its name is taken", []string{"create", "get"}, func(s *tester) {
			made := s.create("a")
			if made.GetUID() == "" || made.GetCreationTimestamp().Time.IsZero() {
				s.Errorf("uid %q, created %v", made.GetUID(), made.GetCreationTimestamp())
			}
			s.number(made.GetResourceVersion())
			read := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil)
			if read.GetUID() != made.GetUID() || read.GetResourceVersion() != made.GetResourceVersion() || read.GetLabels()["apiservertest"] != "a" {
				s.Errorf("created %v, read %v", made.Object["metadata"], read.Object["metadata"])
			}
			s.must(http.StatusConflict, http.MethodPost, s.path("default", ""), s.object("default", "a"))
		}},
		{"names are generated", []string{"create"}, func(s *tester) {
			obj := s.object("default", "")
			obj.SetGenerateName("made-")
			obj.SetLabels(nil)
			if made := s.must(http.StatusCreated, http.MethodPost, s.path("default", ""), obj); !strings.HasPrefix(made.GetName(), "made-") || made.GetName() == "made-" {
				s.Errorf("name %q", made.GetName())
			}
		}},
		{"a dry run changes nothing", []string{"create", "get"}, func(s *tester) {
			s.must(http.StatusCreated, http.MethodPost, s.path("default", "?dryRun=All"), s.object("default", "a"))
			s.must(http.StatusNotFound, http.MethodGet, s.path("default", "/a"), nil)
			made := s.create("a")
			if slices.Contains(s.verbs, "patch") {
				s.must(http.StatusOK, http.MethodPatch, s.path("default", "/a?dryRun=All"), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": "y"}}})
			}
			if slices.Contains(s.verbs, "delete") {
				s.must(http.StatusOK, http.MethodDelete, s.path("default", "/a?dryRun=All"), nil)
			}
			if read := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil); read.GetResourceVersion() != made.GetResourceVersion() || read.GetAnnotations()["x"] != "" {
				s.Errorf("created %v, after dry runs %v", made.Object["metadata"], read.Object["metadata"])
			}
		}},
		{"an update needs the current revision and gives a new one", []string{"create", "update"}, func(s *tester) {
			made := s.create("a")
			first := made.DeepCopy()
			first.SetAnnotations(map[string]string{"writer": "first"})
			stored := s.must(http.StatusOK, http.MethodPut, s.path("default", "/a"), first)
			if s.number(stored.GetResourceVersion()) <= s.number(made.GetResourceVersion()) || stored.GetAnnotations()["writer"] != "first" {
				s.Errorf("created %v, updated %v", made.Object["metadata"], stored.Object["metadata"])
			}
			second := made.DeepCopy()
			second.SetAnnotations(map[string]string{"writer": "second"})
			s.must(http.StatusConflict, http.MethodPut, s.path("default", "/a"), second)
			absent := s.object("default", "absent")
			absent.SetResourceVersion(stored.GetResourceVersion())
			s.must(http.StatusNotFound, http.MethodPut, s.path("default", "/absent"), absent)
		}},
		{"an update cannot change what the server sets", []string{"create", "patch", "get"}, func(s *tester) {
			made := s.create("a")
			for _, metadata := range []map[string]any{
				{"uid": "another"}, {"deletionTimestamp": "2000-01-01T00:00:00Z"}, {"labels": map[string]any{"not valid": "x"}},
				{"resourceVersion": "999999"}, {"name": "b"}, {"finalizers": []string{"not valid"}},
			} {
				if code, text := s.send(http.MethodPatch, s.path("default", "/a"), map[string]any{"metadata": metadata}); code < 400 || code >= 500 {
					s.Errorf("metadata %v: %d %s", metadata, code, text)
				}
			}
			s.must(http.StatusOK, http.MethodPatch, s.path("default", "/a"), map[string]any{"metadata": map[string]any{"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7}})
			if s.has("update") {
				other := made.DeepCopy()
				other.SetUID("another")
				s.must(http.StatusConflict, http.MethodPut, s.path("default", "/a"), other)
			}
			read := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil)
			if read.GetUID() != made.GetUID() || !read.GetCreationTimestamp().Time.Equal(made.GetCreationTimestamp().Time) || read.GetGeneration() != made.GetGeneration() || read.GetDeletionTimestamp() != nil {
				s.Errorf("created %v, then %v", made.Object["metadata"], read.Object["metadata"])
			}
		}},
		{"what is applied is created or merged, and has its managers", []string{"create", "patch", "get"}, func(s *tester) {
			label := func(value string) *unstructured.Unstructured {
				obj := s.object("default", "a")
				obj.Object = map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": s.kind, "metadata": obj.Object["metadata"]}
				obj.SetLabels(map[string]string{"apiservertest": value})
				return obj
			}
			path := s.path("default", "/a?fieldManager=")
			code, text := s.send(http.MethodPatch, path+"one", s.object("default", "a"))
			if code == http.StatusNotImplemented {
				return // it tracks no managers
			}
			if code != http.StatusCreated {
				s.Fatalf("apply to an absent object: %d %s", code, text)
			}
			s.must(http.StatusOK, http.MethodPatch, path+"one", s.object("default", "a"))
			s.must(http.StatusConflict, http.MethodPatch, path+"two", label("b"))
			s.must(http.StatusOK, http.MethodPatch, path+"two&force=true", label("b"))
			read := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil)
			managers := map[string]bool{}
			for _, entry := range read.GetManagedFields() {
				if entry.Operation == metav1.ManagedFieldsOperationApply {
					managers[entry.Manager] = true
				}
			}
			if read.GetLabels()["apiservertest"] != "b" || !managers["two"] || s.Object != nil && !managers["one"] {
				s.Errorf("applied by one and two: %v", read.Object["metadata"])
			}
		}},
		{"no concurrent patch is lost", []string{"create", "patch", "get"}, func(s *tester) {
			s.create("a")
			const writers, each = 4, 5
			errs := make(chan error, 1)
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range each {
						key := fmt.Sprintf("w%d-%d", w, i)
						patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "x"}}}
						answer, err := s.request(s.Context(), http.MethodPatch, s.path("default", "/a"), patch)
						if err != nil {
							fail(errs, "patch: %w", err)
							return
						}
						_ = answer.Body.Close() // it is not read
						if answer.StatusCode != http.StatusOK {
							fail(errs, "patch: %s", answer.Status)
							return
						}
					}
				})
			}
			all.Wait()
			select {
			case err := <-errs:
				s.Fatal(err)
			default:
			}
			if got := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil).GetAnnotations(); len(got) != writers*each {
				s.Errorf("%d of %d patches are there: %v", len(got), writers*each, names(got))
			}
		}},
	}
}

// deletions are the contract of delete and deletecollection.
func deletions() []check {
	return []check{
		{"what was deleted is gone, and its name is free", []string{"create", "get", "delete"}, func(s *tester) {
			made := s.create("a")
			s.must(http.StatusOK, http.MethodDelete, s.path("default", "/a"), nil)
			s.must(http.StatusNotFound, http.MethodGet, s.path("default", "/a"), nil)
			s.must(http.StatusNotFound, http.MethodDelete, s.path("default", "/a"), nil)
			if again := s.create("a"); again.GetUID() == made.GetUID() {
				s.Errorf("the new object has the uid of the old one")
			}
		}},
		{"a deletion heeds its preconditions", []string{"create", "get", "delete"}, func(s *tester) {
			s.create("a")
			s.must(http.StatusConflict, http.MethodDelete, s.path("default", "/a"), map[string]any{
				"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]any{"uid": "another"},
			})
			s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil)
		}},
		{"finalizers keep an object until the last is removed", []string{"create", "get", "delete", "patch"}, func(s *tester) {
			obj := s.object("default", "a")
			obj.SetFinalizers([]string{"example.com/test"})
			s.must(http.StatusCreated, http.MethodPost, s.path("default", ""), obj)
			s.must(http.StatusOK, http.MethodDelete, s.path("default", "/a"), nil)
			if read := s.must(http.StatusOK, http.MethodGet, s.path("default", "/a"), nil); read.GetDeletionTimestamp() == nil {
				s.Error("the object has no deletionTimestamp")
			}
			s.must(http.StatusOK, http.MethodPatch, s.path("default", "/a"), map[string]any{"metadata": map[string]any{"finalizers": nil}})
			s.must(http.StatusNotFound, http.MethodGet, s.path("default", "/a"), nil)
		}},
		{"deletecollection deletes what is selected", []string{"create", "list", "deletecollection"}, func(s *tester) {
			for _, name := range []string{"a", "b", "c"} {
				s.create(name)
			}
			s.must(http.StatusOK, http.MethodDelete, s.path("default", "?labelSelector="+url.QueryEscape("apiservertest!=b")), nil)
			items, _ := s.list(s.path("default", ""))
			if got := names(items); !slices.Equal(got, []string{"b"}) {
				s.Errorf("left: %v, want b", got)
			}
		}},
	}
}
