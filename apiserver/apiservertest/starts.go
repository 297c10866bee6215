// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservertest

import (
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// starts are the contract of how watches begin, for resources that are written and for those
// that are only read.
func starts() []check {
	verbs := []string{"get", "list", "watch"}
	return []check{
		{"a watch without a revision begins with all that is there", verbs, func(s *tester) {
			want := s.present()
			s.watch("").begins(want)
		}},
		{"an informer starts with one watch", verbs, func(s *tester) {
			want := s.present()
			const query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
			if _, revision := s.list(s.path("default", "")); revision == "" || revision == "0" {
				if code, text := s.send(http.MethodGet, s.path("default", "?watch=true"+query), nil); code != http.StatusUnprocessableEntity {
					s.Errorf("lists have no revision, and a watch with initial events answers %d %s", code, text)
				}
				return
			}
			w := s.watch(query)
			w.begins(want)
			end := w.next()
			if end.Type != "BOOKMARK" || end.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				s.Fatalf("after the initial events: %s %v", end, end.Object.Object)
			}
			s.number(end.Object.GetResourceVersion())
			if s.has("create") {
				s.create("later")
				w.expect("ADDED later")
				s.watch("&resourceVersion=" + end.Object.GetResourceVersion()).expect("ADDED later")
			}
		}},
	}
}

// present returns the names of the objects in the namespace default, some of which it creates
// if it can.
func (s *tester) present() []string {
	s.Helper()
	if !s.has("create") {
		return slices.Sorted(slices.Values(s.Have))
	}
	for _, name := range []string{"a", "b"} {
		s.create(name)
	}
	return []string{"a", "b"}
}

// begins requires that the next events are those of objects that are there, in any order.
func (w *watch) begins(want []string) {
	w.s.Helper()
	got := []string{}
	for range want {
		e := w.next()
		if e.Type != "ADDED" {
			w.s.Fatalf("initial event %s", e)
		}
		got = append(got, e.Object.GetName())
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		w.s.Fatalf("initial events of %v, want %v", got, want)
	}
}
