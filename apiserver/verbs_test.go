// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

func finalizer(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetFinalizers([]string{name}) }
}

func mustCreate(t testing.TB, c dynamic.ResourceInterface, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := c.Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFinalizersKeepObjectsUntilTheyAreGone(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	mustCreate(t, c, widget("a", finalizer("example.com/hold")))
	if err := c.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	held, err := c.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || held.GetDeletionTimestamp() == nil || *held.GetDeletionGracePeriodSeconds() != 0 || held.GetGeneration() != 2 {
		t.Fatalf("marked: %v, %v", held, err)
	}
	if err := c.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if again, _ := c.Get(t.Context(), "a", metav1.GetOptions{}); again.GetResourceVersion() != held.GetResourceVersion() {
		t.Error("a second deletion wrote")
	}
	held.SetFinalizers([]string{"example.com/hold", "example.com/more"})
	if _, err := c.Update(t.Context(), held, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a new finalizer on a marked object: %v", err)
	}
	if _, err := c.Create(t.Context(), widget("a"), metav1.CreateOptions{}); err == nil || !strings.HasPrefix(err.Error(), "object is being deleted: ") {
		t.Errorf("create beside a marked object: %v", err)
	}
	gone, err := c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil || len(gone.GetFinalizers()) != 0 {
		t.Fatalf("the last finalizer: %v, %v", gone, err)
	}
	if _, err := c.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

func TestPropagationLeavesFinalizers(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	for policy, want := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: "foregroundDeletion", metav1.DeletePropagationOrphan: "orphan",
	} {
		name := strings.ToLower(string(policy))
		mustCreate(t, c, widget(name))
		if err := c.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(got.GetFinalizers()) != 1 || got.GetFinalizers()[0] != want {
			t.Errorf("%s: %v, %v", policy, got, err)
		}
	}
}

func TestDeletionHoldsToItsPreconditions(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	made := mustCreate(t, c, widget("a"))
	uid, version := types.UID("other"), "1234"
	for _, p := range []*metav1.Preconditions{{UID: &uid}, {ResourceVersion: &version}} {
		if err := c.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: p}); !apierrors.IsConflict(err) {
			t.Errorf("%v: %v", p, err)
		}
	}
	uid, version = made.GetUID(), made.GetResourceVersion()
	if err := c.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: []string{"All"}, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("a dry run deleted: %v", err)
	}
}

func TestGraceCanOnlyBecomeShorter(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	graceful := configMapResource()
	graceful.Deletion.Grace = func(_ resource.Object, asked *int64) int64 {
		if asked != nil {
			return *asked
		}
		return 30
	}
	if err := s.Install(graceful); err != nil {
		t.Fatal(err)
	}
	rt := s.RoundTripper(admin)
	const path = "/api/v1/namespaces/default/configmaps"
	raw(t, rt, http.MethodPost, path, []byte(`{"metadata":{"name":"a"}}`))
	for _, step := range []struct{ query, want string }{
		{"", `"deletionGracePeriodSeconds":30`}, {"?gracePeriodSeconds=60", `"deletionGracePeriodSeconds":30`},
		{"?gracePeriodSeconds=5", `"deletionGracePeriodSeconds":5`}, {"?gracePeriodSeconds=0", `"status":"Success"`},
	} {
		if got := send(t, rt, http.MethodDelete, path+"/a"+step.query, ""); got.code != 200 || !strings.Contains(got.body, step.want) {
			t.Errorf("delete%s: %d %s, want %s", step.query, got.code, got.body, step.want)
		}
	}
}

func TestGeneratedNamesAvoidThoseInUse(t *testing.T) {
	t.Parallel()
	stuck := &stuckEntropy{Entropy: apiserver.SeededEntropy(1)}
	c := dynamicClient(t, newServer(t, func(o *apiserver.Options) { o.Entropy = stuck })).Resource(widgets).Namespace("default")
	long := widget("", func(u *unstructured.Unstructured) { u.SetGenerateName(strings.Repeat("a", 70)) })
	first := mustCreate(t, c, long)
	if !regexp.MustCompile("^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$").MatchString(first.GetName()) {
		t.Errorf("generated name %q", first.GetName())
	}
	stuck.same = first.GetName()[58:]
	_, err := c.Create(t.Context(), long, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) || stuck.asked != 8 {
		t.Errorf("after %d attempts: %v", stuck.asked, err)
	}
	if seconds, _ := apierrors.SuggestsClientDelay(err); seconds != 1 {
		t.Errorf("retry after %d", seconds)
	}
}

// stuckEntropy returns the same suffix once it is set.
type stuckEntropy struct {
	apiserver.Entropy
	same  string
	asked int
}

func (e *stuckEntropy) Suffix(n int) string {
	if e.same == "" {
		return e.Entropy.Suffix(n)
	}
	e.asked++
	return e.same
}

func TestDryRunsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	dry := []string{metav1.DryRunAll}
	out, err := c.Create(t.Context(), widget("a"), metav1.CreateOptions{DryRun: dry})
	if err != nil || out.GetUID() == "" || out.GetResourceVersion() != "" {
		t.Errorf("dry create: %v, %v", out, err)
	}
	if _, err := c.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry create stored: %v", err)
	}
	made := mustCreate(t, c, widget("a"))
	out, err = c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"size":7}}`), metav1.PatchOptions{DryRun: dry})
	if size, _, _ := unstructured.NestedInt64(out.Object, "spec", "size"); err != nil || size != 7 {
		t.Errorf("dry patch: %v, %v", out, err)
	}
	if now, _ := c.Get(t.Context(), "a", metav1.GetOptions{}); now.GetResourceVersion() != made.GetResourceVersion() {
		t.Error("a dry patch wrote")
	}
}

func TestScaleIsAViewOfTheObject(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	made := mustCreate(t, c, widget("a"))
	scale, err := c.Get(t.Context(), "a", metav1.GetOptions{}, "scale")
	if err != nil || scale.GetKind() != "Scale" || scale.GetResourceVersion() != made.GetResourceVersion() {
		t.Fatalf("get: %v, %v", scale, err)
	}
	_ = unstructured.SetNestedField(scale.Object, int64(6), "spec", "replicas")
	if _, err := c.Update(t.Context(), scale, metav1.UpdateOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), scale, metav1.UpdateOptions{}, "scale"); !apierrors.IsConflict(err) {
		t.Errorf("stale scale: %v", err)
	}
	if _, err := c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":8}}`), metav1.PatchOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
	now, err := c.Get(t.Context(), "a", metav1.GetOptions{})
	if size, _, _ := unstructured.NestedInt64(now.Object, "spec", "size"); err != nil || size != 8 || now.GetGeneration() != 3 {
		t.Errorf("after scaling: %v, %v", now, err)
	}
}

func TestObjectsAreServedInEveryVersion(t *testing.T) {
	t.Parallel()
	client := dynamicClient(t, newServer(t))
	v1 := client.Resource(widgets).Namespace("default")
	v2 := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}).Namespace("default")
	mustCreate(t, v2, widget("a", func(u *unstructured.Unstructured) { u.SetAPIVersion("example.com/v2") }))
	for want, c := range map[string]dynamic.ResourceInterface{"example.com/v1": v1, "example.com/v2": v2} {
		one, err := c.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || one.GetAPIVersion() != want {
			t.Errorf("get: %v, %v", one, err)
		}
		list, err := c.List(t.Context(), metav1.ListOptions{})
		if err != nil || list.GetAPIVersion() != want || list.Items[0].GetAPIVersion() != want {
			t.Errorf("list: %v, %v", list, err)
		}
		if _, err := c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"by":"`+want+`"}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestPagesOfAListShowOneRevision(t *testing.T) {
	t.Parallel()
	var store *storage.Memory
	s := newServer(t, func(o *apiserver.Options) { store = o.Store.(*storage.Memory) })
	c := dynamicClient(t, s).Resource(widgets).Namespace("default")
	for i := range 5 {
		mustCreate(t, c, widget(fmt.Sprintf("w%d", i)))
	}
	first, err := c.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil || len(first.Items) != 2 || *first.GetRemainingItemCount() != 3 {
		t.Fatalf("first page: %v, %v", first, err)
	}
	if err := c.Delete(t.Context(), "w3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rest, err := c.List(t.Context(), metav1.ListOptions{Continue: first.GetContinue()})
	if err != nil || len(rest.Items) != 3 || rest.GetResourceVersion() != first.GetResourceVersion() {
		t.Fatalf("the rest: %v, %v", rest, err)
	}
	view, _ := store.View(t.Context(), 0)
	if err := store.Compact(t.Context(), view.Revision()); err != nil {
		t.Fatal(err)
	}
	_, err = c.List(t.Context(), metav1.ListOptions{Continue: first.GetContinue()})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("after compaction: %v", err)
	}
	var expired *apierrors.StatusError
	if !errors.As(err, &expired) {
		t.Fatalf("not a Status: %v", err)
	}
	token := expired.ErrStatus.ListMeta.Continue
	rest, err = c.List(t.Context(), metav1.ListOptions{Continue: token})
	if err != nil || len(rest.Items) != 2 {
		t.Errorf("the inconsistent rest: %v, %v", rest, err)
	}
}

func TestSelectorsNarrowListsAndWatches(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := dynamicClient(t, s).Resource(widgets).Namespace("default")
	for _, colour := range []string{"red", "blue"} {
		mustCreate(t, c, widget(colour, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"c": colour})
			_ = unstructured.SetNestedField(u.Object, colour, "spec", "colour")
		}))
	}
	for _, o := range []metav1.ListOptions{
		{LabelSelector: "c=red"}, {LabelSelector: "c notin (blue)"}, {FieldSelector: "spec.colour=red"}, {FieldSelector: "spec.colour!=blue"},
		{FieldSelector: "metadata.name=red"}, {FieldSelector: "metadata.name!=blue,metadata.namespace=default"},
	} {
		list, err := c.List(t.Context(), o)
		if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "red" {
			t.Errorf("%+v: %v, %v", o, list, err)
		}
	}
	if _, err := c.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.size=1"}); err == nil || err.Error() != "field label not supported: spec.size" {
		t.Errorf("an unknown field: %v", err)
	}
	v2 := "/apis/example.com/v2/widgets?fieldSelector=spec.colour%3Dblue"
	if got := send(t, s.RoundTripper(admin), http.MethodGet, v2, ""); strings.Count(got.body, `"name":"blue"`) != 1 || strings.Contains(got.body, `"name":"red"`) {
		t.Errorf("selection in another version: %s", got.body)
	}
}

// TestWritersNeverLoseUpdates: concurrent read-modify-write loops add up, and patches
// without a resourceVersion never conflict.
func TestWritersNeverLoseUpdates(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	mustCreate(t, c, widget("a"))
	var wg sync.WaitGroup
	const workers, rounds = 4, 20
	for worker := range workers {
		wg.Go(func() {
			for range rounds {
				for done := false; !done; {
					u, err := c.Get(t.Context(), "a", metav1.GetOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					n, _, _ := unstructured.NestedInt64(u.Object, "spec", "count")
					_ = unstructured.SetNestedField(u.Object, n+1, "spec", "count")
					_, err = c.Update(t.Context(), u, metav1.UpdateOptions{})
					if done = err == nil; !done && !apierrors.IsConflict(err) {
						t.Error(err)
						return
					}
				}
				if _, err := c.Patch(t.Context(), "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"w%d":"x"}}}`, worker), metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	u, err := c.Get(t.Context(), "a", metav1.GetOptions{})
	if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "count"); err != nil || n != workers*rounds || len(u.GetAnnotations()) != workers {
		t.Errorf("%d updates left %d, %v", workers*rounds, n, err)
	}
}
