// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiservertest is the conformance suite of resources, whatever stores them: the
// server's store, a backend of the author, or nothing at all.
//
//	func TestMachines(t *testing.T) {
//		apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
//			return apiservertest.Subject{Server: newServer(t), Resource: machines, Object: newMachine}
//		})
//	}
//
// [Run] reads from discovery which verbs a resource has, runs the checks of these verbs,
// and requires that all others are refused. Checks use the API alone, in process.
package apiservertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
)

// Subject is a resource under test, without objects.
type Subject struct {
	// Server that the resource is installed in.
	Server *apiserver.Server
	// Resource under test, in one of its versions.
	Resource schema.GroupVersionResource
	// Object returns a new, valid object, of which the suite sets name, namespace and
	// labels. nil: an object with metadata alone. Not used for resources without create.
	Object func() map[string]any
	// Status returns a valid status of such an object. nil: the status is not written.
	Status func() map[string]any
	// Have are the names of objects that a resource without create has, in the namespace
	// default if it is namespaced.
	Have []string
}

// limit ends what a check waits for.
const limit = time.Minute

// Run runs the suite. open is called for each check; it ends with its test what it began.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, group := range [][]check{discovery(), reads(), writes(), views(), deletions(), watches(), starts()} {
		for _, c := range group {
			t.Run(c.sentence, func(t *testing.T) {
				t.Parallel()
				s := &tester{T: t, Subject: open(t)}
				s.discover()
				for _, verb := range c.verbs {
					if !slices.Contains(s.verbs, verb) {
						return // it has no such verb: nothing to require
					}
				}
				c.prove(s)
			})
		}
	}
}

// check is one sentence of the contract, for resources with some verbs.
type check struct {
	sentence string
	verbs    []string
	prove    func(s *tester)
}

// tester sends requests for a subject.
type tester struct {
	*testing.T
	Subject
	kind       string
	namespaced bool
	verbs      []string
	below      map[string][]string // the verbs of the subresources, by name
}

// groupPath is the path of the group version.
func (s *tester) groupPath() string {
	if s.Resource.Group == "" {
		return "/api/" + s.Resource.Version
	}
	return "/apis/" + s.Resource.Group + "/" + s.Resource.Version
}

// discover reads the properties of the resource.
func (s *tester) discover() {
	s.Helper()
	var list metav1.APIResourceList
	_, text := s.send(http.MethodGet, s.groupPath(), nil)
	if err := json.Unmarshal(text, &list); err != nil {
		s.Fatalf("discovery of %s: %v", s.groupPath(), err)
	}
	s.below = map[string][]string{}
	for _, r := range list.APIResources {
		if r.Name == s.Resource.Resource {
			s.kind, s.namespaced, s.verbs = r.Kind, r.Namespaced, r.Verbs
		} else if name, is := strings.CutPrefix(r.Name, s.Resource.Resource+"/"); is {
			s.below[name] = r.Verbs
		}
	}
	if s.kind == "" {
		s.Fatalf("discovery of %s does not list %s", s.groupPath(), s.Resource.Resource)
	}
}

// has reports whether the resource has a verb.
func (s *tester) has(verb string) bool { return slices.Contains(s.verbs, verb) }

// path returns the path of the objects of a namespace, with what follows it.
func (s *tester) path(namespace, rest string) string {
	path := s.groupPath()
	if s.namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + s.Resource.Resource + rest
}

// send sends a request as an administrator.
func (s *tester) send(method, path string, body any) (int, []byte) {
	s.Helper()
	answer, err := s.request(s.Context(), method, path, body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, text
}

// request sends a request. A PATCH with a fieldManager applies its body, others merge it.
func (s *tester) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if body == nil {
		encoded = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://in-process"+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	switch {
	case method != http.MethodPatch:
		r.Header.Set("Content-Type", "application/json")
	case r.URL.Query().Has("fieldManager"):
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	default:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return s.Server.RoundTripper(&auth.User{Name: "apiservertest", Groups: []string{auth.Masters}}).RoundTrip(r)
}

// must sends a request and requires a status code.
func (s *tester) must(code int, method, path string, body any) *unstructured.Unstructured {
	s.Helper()
	got, text := s.send(method, path, body)
	if got != code {
		s.Fatalf("%s %s: %d, want %d: %s", method, path, got, code, text)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		s.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return out
}

// object returns an object to create.
func (s *tester) object(namespace, name string) *unstructured.Unstructured {
	content := map[string]any{}
	if s.Object != nil {
		content = s.Object()
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(s.Resource.GroupVersion().String())
	u.SetKind(s.kind)
	u.SetName(name)
	u.SetLabels(map[string]string{"apiservertest": name})
	if s.namespaced {
		u.SetNamespace(namespace)
	}
	return u
}

// create creates an object in the namespace default.
func (s *tester) create(name string) *unstructured.Unstructured {
	s.Helper()
	return s.must(http.StatusCreated, http.MethodPost, s.path("default", ""), s.object("default", name))
}

// annotate changes an annotation of an object.
func (s *tester) annotate(name, key, value string) {
	s.Helper()
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
	s.must(http.StatusOK, http.MethodPatch, s.path("default", "/"+name), patch)
}

// list returns the objects at a path, by name, and the revision of the list.
func (s *tester) list(path string) (items map[string]*unstructured.Unstructured, revision string) {
	s.Helper()
	list := s.must(http.StatusOK, http.MethodGet, path, nil)
	items = map[string]*unstructured.Unstructured{}
	all, _, err := unstructured.NestedSlice(list.Object, "items")
	if err != nil {
		s.Fatal(err)
	}
	for _, item := range all {
		u := &unstructured.Unstructured{Object: item.(map[string]any)}
		if items[u.GetName()] != nil {
			s.Fatalf("%s lists %s twice", path, u.GetName())
		}
		items[u.GetName()] = u
	}
	return items, list.GetResourceVersion()
}

// number returns a revision as a number: clients compare them.
func (s *tester) number(revision string) uint64 {
	s.Helper()
	n, err := strconv.ParseUint(revision, 10, 64)
	if err != nil || n == 0 {
		s.Fatalf("the resourceVersion %q is not a number above 0", revision)
	}
	return n
}

func names[V any](of map[string]V) []string {
	out := []string{}
	for name := range of {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// discovery is the contract of what a resource says about itself.
func discovery() []check {
	return []check{{sentence: "exactly the verbs in discovery are answered", prove: func(s *tester) {
		one := s.path("default", "/a")
		for _, v := range []struct{ verb, method, path string }{
			{"get", http.MethodGet, one}, {"list", http.MethodGet, s.path("default", "")}, {"create", http.MethodPost, s.path("default", "")},
			{"update", http.MethodPut, one}, {"patch", http.MethodPatch, one}, {"delete", http.MethodDelete, one},
			{"deletecollection", http.MethodDelete, s.path("default", "")}, {"watch", http.MethodGet, s.path("default", "?watch=true&timeoutSeconds=1")},
		} {
			code, text := s.send(v.method, v.path, s.object("default", "a"))
			if has := slices.Contains(s.verbs, v.verb); has == (code == http.StatusMethodNotAllowed) || code >= http.StatusInternalServerError {
				s.Errorf("%s in discovery: %t, but the answer is %d %s", v.verb, has, code, text)
			}
		}
	}}, {sentence: "the group version has a list kind and a singular name", prove: func(s *tester) {
		if s.kind == "" || len(s.verbs) == 0 {
			s.Errorf("kind %q, verbs %v", s.kind, s.verbs)
		}
	}}}
}

// fail ends a check with an error of a goroutine that is not the test's.
func fail(errs chan<- error, format string, args ...any) {
	select {
	case errs <- fmt.Errorf(format, args...):
	default: // one is enough
	}
}
