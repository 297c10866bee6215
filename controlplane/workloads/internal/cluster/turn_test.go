// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/storage"
)

func TestTurnClaimsWhatItsSelectorMatches(t *testing.T) {
	t.Parallel()
	const own = ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: set, uid: set, controller: true}]"
	for what, tt := range map[string]struct {
		deleting bool
		selector string
		claimed  string
		requests string
	}{
		"a selector": {
			selector: "a=b", claimed: "[default/child]",
			requests: "PATCH .../lost map[metadata:map[ownerReferences:[map[$patch:delete uid:set]] uid:lost]]\n" +
				"PATCH .../orphan map[metadata:map[ownerReferences:[map[apiVersion:apps/v1 blockOwnerDeletion:true controller:true kind:ReplicaSet name:set uid:set]] uid:orphan]]\n",
		},
		"an owner that is being deleted": {deleting: true, selector: "a=b", claimed: "[default/child]"},
		"an empty selector":              {selector: "", claimed: "[default/child default/going default/lost]"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New()
			deletion := ""
			if tt.deleting {
				deletion = "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}"
			}
			set := w.Put(t, cluster.ReplicaSets, "set", deletion)
			w.Put(t, cluster.Pods, "child", "metadata: {labels: {a: b}"+own+"}")
			w.Put(t, cluster.Pods, "lost", "metadata: {labels: {a: c}"+own+"}")
			w.Put(t, cluster.Pods, "going", "metadata: {labels: {a: c}, deletionTimestamp: '2026-01-01T00:00:00Z'"+own+"}")
			w.Put(t, cluster.Pods, "orphan", "metadata: {labels: {a: b}}")
			w.Put(t, cluster.Pods, "orphan-of-others", "metadata: {labels: {a: c}}")
			w.Put(t, cluster.Pods, "orphan-that-goes", "metadata: {labels: {a: b}, deletionTimestamp: '2026-01-01T00:00:00Z'}")
			w.Put(t, cluster.ReplicaSets, "orphan-of-a-kind", "metadata: {labels: {a: b}}")
			selector, err := labels.Parse(tt.selector)
			if err != nil {
				t.Fatal(err)
			}
			var claimed []string
			requests := w.Step(t, func(turn *cluster.Turn) {
				for _, o := range turn.Claim("u", w.Memory.Index.Objects[set], cluster.KindOf("ReplicaSet"), cluster.Pods, selector) {
					claimed = append(claimed, o.Key.Name)
				}
			})
			same(t, "what it has", tt.claimed, fmt.Sprint(claimed))
			same(t, "requests", tt.requests, patches(t, requests))
			for _, r := range requests {
				if r.ContentType != "application/strategic-merge-patch+json" || r.Subject.Key != set {
					t.Errorf("%s is of type %s, about %v", r.Path, r.ContentType, r.Subject)
				}
			}
		})
	}
}

func TestTurnUpdatesObjectsAndSubresources(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := storage.Key{Bucket: cluster.Pods, Name: "default/p"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	requests := w.Step(t, func(turn *cluster.Turn) {
		turn.Update("u", key, "", pod)
		turn.Update("u", key, "status", pod)
		if _, ok := turn.Written[key]; !ok {
			t.Error("the object is not among those that the step writes")
		}
	})
	same(t, "requests", "PUT /api/v1/namespaces/default/pods/p\nPUT /api/v1/namespaces/default/pods/p/status", clustertest.Lines(requests))
	same(t, "the object", "p", clustertest.Body[corev1.Pod](t, requests[1]).Name)
	same(t, "the user and the subject", [2]any{"u", step.Subject{Key: key}}, [2]any{requests[0].User, requests[0].Subject})
}

func TestTurnReadsWhatIsStored(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.Pods, "p", "spec: {nodeName: node}")
	w.Step(t, func(turn *cluster.Turn) {
		if p := cluster.Stored[corev1.Pod](turn, key); p == nil || p.Spec.NodeName != "node" {
			t.Errorf("the Pod is %v", p)
		}
		if p := cluster.Stored[corev1.Pod](turn, storage.Key{Bucket: cluster.Pods, Name: "default/q"}); p != nil {
			t.Errorf("a Pod that is not there is %v", p)
		}
		if s := cluster.Stored[struct {
			Spec string `json:"spec"`
		}](turn, key); s != nil {
			t.Errorf("a Pod that cannot be read is %v", s)
		}
		same(t, "the time in the precision of objects", w.Now, turn.Stamp().UTC())
	})
}

func TestPodIsAvailableOnceItHasBeenReadyForLongEnough(t *testing.T) {
	t.Parallel()
	owner := storage.Key{Bucket: cluster.ReplicaSets, Name: "default/set"}
	for _, tt := range []struct {
		ready    bool
		since    time.Duration
		minReady int32
		want     bool
		timer    time.Duration
	}{
		{ready: false, since: time.Hour},
		{ready: true, since: 0, want: true},
		{ready: true, since: 9 * time.Second, minReady: 10, timer: time.Second},
		{ready: true, since: 10 * time.Second, minReady: 10, want: true},
	} {
		w := clustertest.New()
		key := w.Put(t, cluster.Pods, "p", fmt.Sprintf("status: {conditions: [{type: Ready, status: '%v', lastTransitionTime: '%s'}]}",
			map[bool]string{true: "True", false: "False"}[tt.ready], w.Now.Add(-tt.since).Format(time.RFC3339)))
		w.Step(t, func(turn *cluster.Turn) {
			same(t, fmt.Sprint(tt), tt.want, turn.Available(owner, w.Memory.Index.Objects[key], tt.minReady))
		})
		wait := time.Duration(0)
		if at, ok := w.Memory.Timers[owner]; ok {
			wait = at.Sub(w.Now)
		}
		same(t, "the timer of "+fmt.Sprint(tt), tt.timer, wait)
	}
}

// TestUnderWayLastsUntilTheOutcome has a request about one object that writes another.
func TestUnderWayLastsUntilTheOutcome(t *testing.T) {
	t.Parallel()
	w := withNamespace(t)
	set, pod := w.Put(t, cluster.ReplicaSets, "set", "{}"), w.Put(t, cluster.Pods, "p", "{}")
	var requests []step.Request
	for range 2 {
		requests = append(requests, w.Step(t, func(turn *cluster.Turn) {
			turn.Patch("u", set, pod, map[string]any{})
			same(t, "requests of the same step", len(requests) > 0, w.Memory.Has(set))
		})...)
	}
	w.Memory.Note(cluster.Note{User: "u", About: set}, w.Now)
	events := recorded(t, w)
	same(t, "objects of Events", false, w.Memory.Has(events[0].Subject.Key))
	w.Memory.Forget()
	has := func() [2]bool { return [2]bool{w.Memory.Has(set), w.Memory.Has(pod)} }
	same(t, "after a Reset", [2]bool{true, true}, has())
	w.Memory.Reported(requests[0], "", true, w.Now)
	same(t, "after one of two outcomes", [2]bool{true, true}, has())
	w.Memory.Reported(requests[1], "no", true, w.Now)
	same(t, "after both", [2]bool{false, false}, has())
	if requests[0].Number == requests[1].Number {
		t.Error("two requests have one number")
	}
}

func TestPodOfCopiesTheTemplate(t *testing.T) {
	t.Parallel()
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Name: "ignored", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"e"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}
	owner := cluster.Reference(cluster.KindOf("ReplicaSet"), "set", "uid")
	got := cluster.PodOf(template, "set-", owner)
	yes := true
	same(t, "the Pod", &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "set-", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"e"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "set", UID: "uid", Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
	}, got)
	got.Spec.Containers[0].Name = "changed"
	same(t, "the template", "main", template.Spec.Containers[0].Name)
	given := map[string]string{"a": "b"}
	same(t, "labels with one more", map[string]string{"a": "b", "c": "d"}, cluster.With(given, "c", "d"))
	same(t, "the labels that were given", map[string]string{"a": "b"}, given)
	same(t, "one label", map[string]string{"c": "d"}, cluster.With(nil, "c", "d"))
}
