// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// event is one event of a watch.
type event struct {
	Type   string
	Object unstructured.Unstructured
}

func (e event) String() string { return e.Type + " " + e.Object.GetName() }

// watch is a stream of events.
type watch struct {
	s    *tester
	body io.ReadCloser
	from *json.Decoder
}

// watch opens a watch of the namespace default, which ends with the check.
func (s *tester) watch(query string) *watch {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	s.Cleanup(cancel)
	answer, err := s.request(ctx, http.MethodGet, s.path("default", "?watch=true"+query), nil)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = answer.Body.Close() }) // it was only read
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body) // for the message
		s.Fatalf("watch %s: %s %s", query, answer.Status, text)
	}
	return &watch{s: s, body: answer.Body, from: json.NewDecoder(answer.Body)}
}

// next returns the next event.
func (w *watch) next() event {
	w.s.Helper()
	var raw struct {
		Type   string
		Object json.RawMessage
	}
	if err := w.from.Decode(&raw); err != nil {
		w.s.Fatalf("the watch ended: %v", err)
	}
	e := event{Type: raw.Type}
	if err := e.Object.UnmarshalJSON(raw.Object); err != nil {
		w.s.Fatalf("%s: %v", raw.Object, err)
	}
	if e.Type == "ERROR" {
		w.s.Fatalf("the watch ended with %s", raw.Object)
	}
	return e
}

// expect requires the next events.
func (w *watch) expect(want ...string) {
	w.s.Helper()
	for i, text := range want {
		if got := w.next(); got.String() != text {
			w.s.Fatalf("event %d: %s, want %s", i, got, text)
		}
	}
}

// watches are the contract of watch.
func watches() []check {
	verbs := []string{"create", "list", "watch", "patch", "delete"}
	return []check{
		{"a watch has every change after its revision, in order", verbs, func(s *tester) {
			s.create("before")
			_, revision := s.list(s.path("default", ""))
			w := s.watch("&resourceVersion=" + revision)
			s.create("a")
			s.annotate("a", "x", "1")
			s.annotate("before", "x", "1")
			s.must(http.StatusOK, http.MethodDelete, s.path("default", "/a"), nil)
			w.expect("ADDED a", "MODIFIED a", "MODIFIED before", "DELETED a")
			s.create("after")
			w.expect("ADDED after")
		}},
		{"a watch can be resumed from each of its events", verbs, func(s *tester) {
			_, start := s.list(s.path("default", ""))
			s.create("a")
			s.annotate("a", "x", "1")
			s.create("b")
			s.must(http.StatusOK, http.MethodDelete, s.path("default", "/a"), nil)
			want := []string{"ADDED a", "MODIFIED a", "ADDED b", "DELETED a"}
			w, last := s.watch("&resourceVersion="+start), s.number(start)
			var revisions []string
			for i := range want {
				e := w.next()
				if n := s.number(e.Object.GetResourceVersion()); e.String() != want[i] || n <= last {
					s.Fatalf("event %d: %s at %d after %d, want %s", i, e, n, last, want[i])
				} else {
					last = n
				}
				revisions = append(revisions, e.Object.GetResourceVersion())
			}
			for i, revision := range revisions[:len(revisions)-1] {
				s.watch("&resourceVersion=" + revision).expect(want[i+1:]...)
			}
		}},
		{"a watch with a selector sees objects come and go", verbs, func(s *tester) {
			_, revision := s.list(s.path("default", ""))
			w := s.watch("&labelSelector=apiservertest%3Da&resourceVersion=" + revision)
			s.create("b")
			s.create("a")
			relabel := func(name, value string) {
				s.must(http.StatusOK, http.MethodPatch, s.path("default", "/"+name), map[string]any{"metadata": map[string]any{"labels": map[string]any{"apiservertest": value}}})
			}
			relabel("a", "z")
			relabel("b", "a")
			w.expect("ADDED a", "DELETED a", "ADDED b")
		}},
		{"watches of concurrent writes lose nothing", verbs, concurrent},
	}
}

// concurrent writes from several goroutines while a watch is open, and requires that the
// events lead from the first list to the last one.
func concurrent(s *tester) {
	_, revision := s.list(s.path("default", ""))
	w := s.watch("&resourceVersion=" + revision)
	const writers, each = 4, 12
	errs := make(chan error, 1)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range each {
				if err := s.work(fmt.Sprintf("w%d-%d", i, j), j%3 == 0); err != nil {
					fail(errs, "%w", err)
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
	s.create("end")
	state, last := map[string]string{}, s.number(revision)
	for {
		e := w.next()
		name, at := e.Object.GetName(), s.number(e.Object.GetResourceVersion())
		if at < last {
			s.Fatalf("%s at %d comes after %d", e, at, last)
		}
		last = at
		switch _, has := state[name]; {
		case e.Type == "ADDED" && has, e.Type != "ADDED" && !has:
			s.Fatalf("%s, and the object was there before: %t", e, has)
		case e.Type == "DELETED":
			delete(state, name)
		default:
			state[name] = e.Object.GetResourceVersion()
		}
		if name == "end" {
			break
		}
	}
	items, _ := s.list(s.path("default", ""))
	if got, want := names(state), names(items); !slices.Equal(got, want) {
		s.Fatalf("the events lead to %v, the list has %v", got, want)
	}
	for name, obj := range items {
		if state[name] != obj.GetResourceVersion() {
			s.Errorf("%s: the last event is of revision %s, the object of %s", name, state[name], obj.GetResourceVersion())
		}
	}
}

// work creates an object, changes it, and deletes it if it is to go.
func (s *tester) work(name string, gone bool) error {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": "y"}}}
	steps := []struct {
		code         int
		method, path string
		body         any
	}{
		{http.StatusCreated, http.MethodPost, s.path("default", ""), s.object("default", name)},
		{http.StatusOK, http.MethodPatch, s.path("default", "/"+name), patch},
		{http.StatusOK, http.MethodDelete, s.path("default", "/"+name), nil},
	}
	if !gone {
		steps = steps[:2]
	}
	for _, step := range steps {
		answer, err := s.request(s.Context(), step.method, step.path, step.body)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was only read
		if err != nil || answer.StatusCode != step.code {
			return fmt.Errorf("%s %s: %s %s %w", step.method, step.path, answer.Status, text, err)
		}
	}
	return nil
}
