// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
)

// notes are a resource that another server serves, with some verbs.
func notes(verbs ...string) step.Resource {
	return step.Resource{
		Bucket: step.ElsewhereBucket("example.org", "notes"), Group: "example.org", Version: "v1", Plural: "notes", Kind: "Note", Namespaced: true, Verbs: verbs,
	}
}

// withoutStatus is the error of an answer whose body is no Status.
func withoutStatus(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "a wall of text\n"}}
}

const notesPath = "/apis/example.org/v1/namespaces/doomed/notes"

// catalog is a catalog with resources of another server, which may change.
type catalog struct {
	steptest.Catalog
	others     step.Elsewhere
	generation uint64
}

func (c *catalog) Elsewhere() *step.Elsewhere { return &c.others }

func (c *catalog) Generation() uint64 { return c.generation }

// server is another API server, with objects of one resource in the namespace "doomed".
type server struct {
	t *testing.T
	// finalizers of the objects by name; an object without finalizers goes when it is deleted.
	objects map[string][]string
	// refuse answers requests, as "METHOD path", with errors.
	refuse map[string]error
	log    []string
}

// fetch implements [step.Fetcher].
func (s *server) fetch(_ context.Context, r step.Request) (io.ReadCloser, error) {
	line := r.Method + " " + r.Path
	s.log = append(s.log, line)
	if err := s.refuse[line]; err != nil {
		return nil, err
	}
	if r.Method == "DELETE" {
		if want := `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`; string(r.Body) != want {
			s.t.Errorf("%s %s, want %s", line, r.Body, want)
		}
		for name, finalizers := range s.objects {
			if len(finalizers) == 0 && (r.Path == notesPath || r.Path == notesPath+"/"+name) {
				delete(s.objects, name)
			}
		}
		return io.NopCloser(strings.NewReader("{}")), nil
	}
	list := &metav1.PartialObjectMetadataList{}
	for name, finalizers := range s.objects {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}})
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	raw, err := json.Marshal(list)
	return io.NopCloser(strings.NewReader(string(raw))), err
}

// outside is a world with another server.
type outside struct {
	*world
	catalog *catalog
	server  *server
	now     time.Time
}

func newOutside(t *testing.T, resources ...step.Resource) *outside {
	t.Helper()
	o := &outside{
		catalog: &catalog{Catalog: testCatalog(), others: step.Elsewhere{Resources: resources}, generation: 1},
		server:  &server{t: t, objects: map[string][]string{}, refuse: map[string]error{}}, world: newWorld(t), now: time.Unix(100, 0),
	}
	o.emptier = New(o.catalog, steptest.Decode, o.server.fetch)
	return o
}

// settle has the emptier look until nothing is left to do now, with all its requests carried
// out, and returns them.
func (o *outside) settle() []string {
	o.t.Helper()
	var all []string
	for range 20 {
		batch, err := o.cursor.Poll()
		if err != nil {
			o.t.Fatal(err)
		}
		for _, e := range batch.Events {
			steptest.Observe(o.emptier, e)
		}
		o.last = o.emptier.Sync(o.store.Latest(), o.now)
		if len(o.last) == 0 {
			return all
		}
		for _, r := range o.last {
			all = append(all, r.Method+" "+r.Path)
			if r.Do != nil {
				if err := r.Do(o.t.Context()); err != nil {
					o.t.Error(err)
				}
			}
		}
		o.obey()
	}
	o.t.Fatalf("the emptier does not come to rest: %q", all)
	return nil
}

// delay is how long the emptier wants to wait; 0: for a write only.
func (o *outside) delay() time.Duration {
	if at := o.emptier.Wake(); !at.IsZero() {
		return at.Sub(o.now)
	}
	return 0
}

// asked returns what the other server was asked since the last time.
func (o *outside) asked() []string {
	out := o.server.log
	o.server.log = nil
	return out
}

const (
	sweep    = "DELETE " + notesPath
	list     = "GET " + notesPath
	status   = "PUT /api/v1/namespaces/doomed/status"
	finalize = "PUT /api/v1/namespaces/doomed/finalize"
	failed   = "NamespaceDeletionContentFailure ContentDeletionFailed: Failed to delete all resource types, 1 remaining: "
	remains  = "NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: notes.example.org has 1 resource instances"
	held     = "NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: x/y in 1 resource instances"
)

func TestEmptierHasOtherServersDelete(t *testing.T) {
	t.Parallel()
	unavailable := apierrors.NewServiceUnavailable("later")
	missing := apierrors.NewNotFound(schema.GroupResource{Group: "example.org", Resource: "notes"}, "")
	unsupported := apierrors.NewMethodNotSupported(schema.GroupResource{Group: "example.org", Resource: "notes"}, "delete")
	all := []string{"delete", "deletecollection", "list"}
	done := []string{sweep, status, finalize}
	waits := []string{sweep, status}
	for _, test := range []struct {
		name       string
		verbs      []string
		objects    map[string][]string
		refuse     map[string]error
		asked      []string
		want       []string
		conditions []string
	}{
		{"nothing is left", all, map[string][]string{"a": nil, "b": nil}, nil, []string{sweep, list}, done, nil},
		{"an object is held", all, map[string][]string{"a": nil, "b": {"x/y"}}, nil, []string{sweep, list}, waits, []string{remains, held}},
		{"one by one", []string{"delete", "list"}, map[string][]string{"a": nil, "b": nil}, nil, []string{list, sweep + "/a", sweep + "/b", list}, done, nil},
		{"one by one, as the collection cannot be deleted", all, map[string][]string{"a": nil}, map[string]error{sweep: unsupported},
			[]string{sweep, list, sweep + "/a", list}, done, nil},
		{"one by one, one has gone", []string{"delete", "list"}, map[string][]string{"a": nil, "b": {"x/y"}}, map[string]error{sweep + "/b": missing},
			[]string{list, sweep + "/a", sweep + "/b", list}, waits, []string{remains, held}},
		{"one by one, one is refused", []string{"delete", "list"}, map[string][]string{"a": nil, "b": nil}, map[string]error{sweep + "/a": unavailable},
			[]string{list, sweep + "/a"}, waits, []string{failed + "later"}},
		{"one by one, one cannot be deleted", []string{"delete", "list"}, map[string][]string{"a": nil}, map[string]error{sweep + "/a": unsupported},
			[]string{list, sweep + "/a", list}, waits, []string{failed + "unexpected items still remain in namespace: doomed for gvr: example.org/v1, Resource=notes", remains}},
		{"name that is escaped", []string{"delete", "list"}, map[string][]string{"a%b": {"x/y"}}, nil, []string{list, sweep + "/a%25b", list}, waits, []string{remains, held}},
		{"no such resource", all, nil, map[string]error{sweep: missing, list: missing}, []string{sweep, list, list}, done, nil},
		{"cannot be listed", []string{"delete", "deletecollection"}, map[string][]string{"a": {"x/y"}}, nil, []string{sweep}, done, nil},
		{"deletion is refused", all, nil, map[string]error{sweep: unavailable}, []string{sweep}, waits, []string{failed + "later"}},
		{"deletion is refused without a Status", all, nil, map[string]error{sweep: withoutStatus(503)}, []string{sweep}, waits,
			[]string{failed + "the server is currently unable to handle the request"}},
		{"an error without a Status", all, nil, map[string]error{sweep: withoutStatus(500)}, []string{sweep}, waits,
			[]string{failed + `an error on the server ("a wall of text") has prevented the request from succeeding`}},
		{"list is refused", all, nil, map[string]error{list: errors.New("connection refused")}, []string{sweep, list}, waits, []string{failed + "connection refused"}},
		{"cannot be deleted", []string{"get", "list", "deletecollection"}, map[string][]string{"a": nil}, nil, nil, done[1:], nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t, notes(test.verbs...))
			o.server.objects, o.server.refuse = test.objects, test.refuse
			got := o.settle()
			expect(t, "the server was asked", test.asked, o.asked())
			expect(t, "conditions", test.conditions, o.conditions())
			// While the server is asked, the conditions are those without it.
			if diff := cmp.Diff(test.want, slices.Compact(got)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			want := time.Duration(0)
			if test.want[len(test.want)-1] != finalize {
				want = firstSweep
			}
			if got := o.delay(); got != want {
				t.Errorf("it waits for %v, want %v", got, want)
			}
		})
	}
}

// TestEmptierAsksOtherServersAgain with growing delays, and only for what is not finished.
func TestEmptierAsksOtherServersAgain(t *testing.T) {
	t.Parallel()
	tags := notes("delete", "deletecollection", "list")
	tags.Plural = "tags"
	o := newOutside(t, notes("delete", "deletecollection", "list"), tags)
	o.server.refuse[sweep] = apierrors.NewServiceUnavailable("later")
	tagsPath := strings.Replace(notesPath, "notes", "tags", 1)
	expect(t, "requests", []string{sweep, "DELETE " + tagsPath, status}, slices.Compact(o.settle()))
	expect(t, "the server was asked", []string{sweep, "DELETE " + tagsPath, "GET " + tagsPath}, o.asked())
	var delays []time.Duration
	for range 7 {
		delay := o.delay()
		delays = append(delays, delay)
		o.now = o.now.Add(delay - 1)
		expect(t, "requests too early", nil, o.settle())
		o.now = o.now.Add(1)
		if got := o.settle(); len(got) == 0 {
			t.Fatalf("no requests after %v", delays)
		}
		expect(t, "the server was asked", []string{sweep}, o.asked())
		expect(t, "conditions", []string{failed + "later"}, o.conditions())
	}
	const s = time.Second
	if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 15 * s, 15 * s, 15 * s}; !slices.Equal(want, delays) {
		t.Errorf("delays %v, want %v", delays, want)
	}
	clear(o.server.refuse)
	o.now = o.now.Add(o.delay())
	got := o.settle()
	expect(t, "the server was asked", []string{sweep, list}, o.asked())
	if len(got) == 0 || got[len(got)-1] != finalize {
		t.Errorf("requests %q, want the last one to finalize", got)
	}
}

// TestEmptierWaitsForServersWhoseResourcesAreUnknown, as it does not know what they have.
func TestEmptierWaitsForServersWhoseResourcesAreUnknown(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	o.catalog.others.Stale = []schema.GroupVersion{{Group: "b.example.org", Version: "v1"}, {Group: "a.example.org", Version: "v2"}}
	o.object("configmaps", "doomed/c")
	expect(t, "requests", []string{"DELETE /api/v1/namespaces/doomed/configmaps"}, slices.Compact(o.settle())[:1])
	o.put("configmaps", "doomed/c", nil)
	o.settle()
	expect(t, "conditions", []string{
		"NamespaceDeletionDiscoveryFailure DiscoveryFailed: Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: " +
			"a.example.org/v2: stale GroupVersion discovery: a.example.org/v2, b.example.org/v1: stale GroupVersion discovery: b.example.org/v1",
	}, o.conditions())
	if got := o.delay(); got != firstSweep {
		t.Errorf("it waits for %v, want %v", got, firstSweep)
	}
	expect(t, "requests while the time runs", nil, o.settle())
	o.catalog.others = step.Elsewhere{Resources: []step.Resource{notes("delete", "deletecollection", "list")}}
	o.catalog.generation++
	o.server.objects["a"] = nil
	got := o.settle()
	expect(t, "the server was asked", []string{sweep, list}, o.asked())
	if len(got) == 0 || got[len(got)-1] != finalize {
		t.Errorf("requests %q, want the last one to finalize", got)
	}
}

// TestEmptierAsksOtherServersOncePodsAreGone, as what pods need outlives them.
func TestEmptierAsksOtherServersOncePodsAreGone(t *testing.T) {
	t.Parallel()
	o := newOutside(t, notes("delete", "deletecollection", "list"))
	o.object("pods", "doomed/p", "x/y")
	expect(t, "requests", []string{status}, o.settle())
	expect(t, "the server was asked", nil, o.asked())
	o.put("pods", "doomed/p", nil)
	o.settle()
	expect(t, "the server was asked", []string{sweep, list}, o.asked())
}

// TestEmptierLeavesWhatHasNoNamespace of other servers alone.
func TestEmptierLeavesWhatHasNoNamespace(t *testing.T) {
	t.Parallel()
	wide := notes("delete", "deletecollection", "list")
	wide.Namespaced = false
	o := newOutside(t, wide)
	expect(t, "requests", []string{status, finalize}, slices.Compact(o.settle()))
	expect(t, "the server was asked", nil, o.asked())
}

// TestEmptierFindsNamespacesInASnapshot, and forgets those that it does not have.
func TestEmptierFindsNamespacesInASnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.object("configmaps", "doomed/c")
	w.requests()
	w.last = nil
	if w.emptier.Name() != "namespace-controller" {
		t.Errorf("named %q", w.emptier.Name())
	}
	again := New(testCatalog(), steptest.Decode, nil)
	again.Reset(w.store.Latest())
	requests := again.Sync(w.store.Latest(), time.Unix(2, 0))
	if len(requests) != 1 || requests[0].Path != "/api/v1/namespaces/doomed/configmaps" {
		t.Errorf("requests %v", requests)
	}
	w.put("namespaces", "doomed", nil)
	again.Done(requests[0], errors.New("no"))
	again.Reset(w.store.Latest())
	if requests := again.Sync(w.store.Latest(), time.Unix(2, 0)); len(requests) > 0 {
		t.Errorf("requests %v for a namespace that has gone", requests)
	}
}

func TestEmptierWaitsForItsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.object("configmaps", "doomed/c")
	w.object("example.com/widgets", "doomed/w")
	expect(t, "requests", []string{"DELETE /api/v1/namespaces/doomed/configmaps", "DELETE /apis/example.com/v1/namespaces/doomed/widgets"}, w.requests())
	underWay := w.last
	w.last = nil
	w.put("configmaps", "doomed/c", nil)
	expect(t, "requests while two are under way", nil, w.requests())
	w.emptier.Done(underWay[0], nil)
	expect(t, "requests while one is under way", nil, w.requests())
	w.emptier.Done(underWay[1], nil)
	expect(t, "requests", []string{"DELETE /apis/example.com/v1/namespaces/doomed/widgets"}, w.requests())
}
