// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/controlplane/disruption"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

const bucket = "policy/poddisruptionbudgets"

var catalog = steptest.Catalog{
	{Bucket: "apps/replicasets", Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true},
	{Bucket: "apps/deployments", Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true},
}

// world is a Deployment of four with its ReplicaSet, of whose Pods some are ready,
// some not, and one is being deleted.
func world(t *testing.T, ready, unready int) storage.Store {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	t.Cleanup(func() { _ = store.Close() })
	four := int32(4)
	put(t, store, "apps/deployments", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &four}})
	put(t, store, "apps/replicasets", &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "r", OwnerReferences: owner("apps/v1", "Deployment", "web", "d")},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32)},
	})
	for i := range ready + unready + 1 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-1-", i), Labels: map[string]string{"app": "web"}, OwnerReferences: owner("apps/v1", "ReplicaSet", "web-1", "r"),
		}}
		if i < ready || i == ready+unready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if i == ready+unready {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		put(t, store, "pods", p)
	}
	return store
}

func owner(apiVersion, kind, name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes}}
}

func put(t *testing.T, store storage.Store, bucket string, obj metav1.Object) {
	t.Helper()
	obj.SetNamespace("default")
	value, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	key := storage.Key{Bucket: bucket, Name: "default/" + obj.GetName()}
	if _, err := store.Commit(t.Context(), storage.Write{Key: key, Value: value, Expect: storage.Absent}); err != nil {
		t.Fatal(err)
	}
}

// judged lets a new controller look at everything once, and returns the status
// that it gives a budget; nil if it leaves that as it is.
func judged(t *testing.T, store storage.Store, now time.Time) (*policyv1.PodDisruptionBudgetStatus, *disruption.Controller) {
	t.Helper()
	view, err := store.View(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	c := disruption.New(catalog)
	c.Reset(view)
	requests := c.Sync(view, now)
	if len(requests) == 0 {
		return nil, c
	}
	var b policyv1.PodDisruptionBudget
	if err := json.Unmarshal(requests[0].Body, &b); err != nil {
		t.Fatal(err)
	}
	return &b.Status, c
}

func budget(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	change(b)
	return b
}

func TestBudgetsAllowDisruptions(t *testing.T) {
	t.Parallel()
	number := func(s string) *intstr.IntOrString { n := intstr.Parse(s); return &n }
	for name, c := range map[string]struct {
		low, high      *intstr.IntOrString
		ready, unready int
		// expected, desired, healthy and allowed.
		want [4]int32
	}{
		"at least, a number: of the Pods there are":  {low: number("2"), ready: 3, unready: 0, want: [4]int32{4, 2, 3, 1}},
		"at least, a part: of those there should be": {low: number("50%"), ready: 4, want: [4]int32{4, 2, 4, 2}},
		"a part is rounded up":                       {low: number("51%"), ready: 4, want: [4]int32{4, 3, 4, 1}},
		"at most, a number":                          {high: number("1"), ready: 4, want: [4]int32{4, 3, 4, 1}},
		"at most, a part, rounded up":                {high: number("30%"), ready: 4, want: [4]int32{4, 2, 4, 2}},
		"those that are not ready do not count":      {high: number("1"), ready: 2, unready: 2, want: [4]int32{4, 3, 2, 0}},
		"at most more than there are":                {high: number("9"), ready: 1, want: [4]int32{4, 0, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := world(t, c.ready, c.unready)
			put(t, store, bucket, budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable, b.Spec.MaxUnavailable = c.low, c.high }))
			s, _ := judged(t, store, time.Now())
			if diff := cmp.Diff(c.want, [4]int32{s.ExpectedPods, s.DesiredHealthy, s.CurrentHealthy, s.DisruptionsAllowed}); diff != "" {
				t.Error(diff)
			}
			if s.ObservedGeneration != 3 || len(s.Conditions) != 1 || (s.Conditions[0].Status == metav1.ConditionTrue) != (c.want[3] > 0) {
				t.Errorf("generation and condition: %+v", s)
			}
		})
	}
}

func TestBudgetsCountEvictedPodsAsDisrupted(t *testing.T) {
	t.Parallel()
	store, now := world(t, 4, 0), time.Now().Truncate(time.Second)
	one := intstr.FromInt32(1)
	put(t, store, bucket, budget(func(b *policyv1.PodDisruptionBudget) {
		b.Spec.MaxUnavailable = &one
		b.Status.DisruptedPods = map[string]metav1.Time{"web-1-0": {Time: now}, "gone": {Time: now}}
	}))
	s, c := judged(t, store, now)
	if s.CurrentHealthy != 3 || s.DisruptionsAllowed != 0 || len(s.DisruptedPods) != 1 {
		t.Errorf("while the eviction is under way: %+v", s)
	}
	if want := now.Add(2 * time.Minute); !c.Wake().Equal(want) {
		t.Errorf("looked at again at %v, want %v", c.Wake(), want)
	}
	if s, _ = judged(t, store, now.Add(2*time.Minute)); s.CurrentHealthy != 4 || s.DisruptionsAllowed != 1 || s.DisruptedPods != nil {
		t.Errorf("when it has not come about: %+v", s)
	}
}

func TestBudgetsAllowNothingForPodsWithoutAController(t *testing.T) {
	t.Parallel()
	store, one := world(t, 2, 0), intstr.FromInt32(1)
	put(t, store, "pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "other", Labels: map[string]string{"app": "web"}, OwnerReferences: owner("batch/v1", "Job", "j", "j"),
	}})
	put(t, store, bucket, budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &one }))
	s, _ := judged(t, store, time.Now())
	if s.DisruptionsAllowed != 0 || s.Conditions[0].Reason != policyv1.SyncFailedReason || s.Conditions[0].Message != `found no controllers for pod "other"` {
		t.Errorf("got %+v", s)
	}
}

func TestControllerObservesOnlyRelevantWrites(t *testing.T) {
	t.Parallel()
	store, one := world(t, 4, 0), intstr.FromInt32(1)
	put(t, store, bucket, budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &one }))
	view, err := store.View(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	_, c := judged(t, store, time.Now())
	for write, want := range map[string]int{"pods other": 0, "configmaps default": 0, "apps/deployments default": 1, "pods default": 1} {
		kind, namespace, _ := strings.Cut(write, " ")
		steptest.Observe(c, storage.Event{Deleted: true, Record: &storage.Record{Key: storage.Key{Bucket: kind, Name: namespace + "/other-pod"}}})
		if got := len(c.Sync(view, time.Now())); got != want {
			t.Errorf("%s: %d requests, want %d", write, got, want)
		}
	}
}

// TestIndexEqualsRebuild: what the controller has followed is what it
// would read.
func TestIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	store, one := world(t, 3, 1), intstr.FromInt32(1)
	put(t, store, bucket, budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &one }))
	_, c := judged(t, store, time.Now())
	for _, change := range []struct {
		name string
		pod  *corev1.Pod // nil: it goes
	}{
		{"web-1-0", nil},
		{"web-1-1", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1-1", Labels: map[string]string{"app": "another"}}}},
		{"new", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: map[string]string{"app": "web"}}}},
	} {
		key := storage.Key{Bucket: "pods", Name: "default/" + change.name}
		view, err := store.View(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		old := view.Get(key)
		if old != nil {
			if _, err := store.Commit(t.Context(), storage.Write{Key: key, Expect: old.Modified}); err != nil {
				t.Fatal(err)
			}
		}
		event := storage.Event{Record: old, Deleted: true}
		if change.pod != nil {
			put(t, store, "pods", change.pod)
		}
		if view, err = store.View(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if change.pod != nil {
			event = storage.Event{Record: view.Get(key)}
		}
		steptest.Observe(c, event)
		followed, again := c.Sync(view, time.Unix(100, 0)), disruption.New(catalog)
		again.Reset(view)
		status := func(requests []step.Request) (s policyv1.PodDisruptionBudgetStatus) {
			var b policyv1.PodDisruptionBudget
			if len(requests) != 1 || json.Unmarshal(requests[0].Body, &b) != nil {
				t.Fatalf("after %s: %v", change.name, requests)
			}
			for i := range b.Status.Conditions {
				b.Status.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			return b.Status
		}
		if diff := cmp.Diff(status(again.Sync(view, time.Unix(100, 0))), status(followed)); diff != "" {
			t.Errorf("after %s (-read +followed):\n%s", change.name, diff)
		}
	}
}
