// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/storage"
)

func TestIndexFindsPodsByOwnerNodeAndService(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	x := w.Memory.Index
	key := w.Put(t, cluster.Pods, "p", `
metadata: {labels: {a: b}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: set, uid: set, controller: true}]}
spec: {nodeName: node1, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
status: {phase: Running, podIP: 10.1.0.1}`)
	service := w.Put(t, cluster.Services, "s", "spec: {selector: {a: b}}")
	check := func(when string, children, on, selected, services int, cpu int64) {
		t.Helper()
		got := []any{len(x.ChildrenOf("set", cluster.Pods)), len(x.On("node1")), len(x.SelectedBy(x.Objects[service])), x.CountOn("node1"), x.Used("node1").Requests[corev1.ResourceCPU]}
		if want := []any{children, on, selected, on, cpu}; !slices.Equal(got, want) {
			t.Errorf("%s: children, on the node, selected, count and CPU are %v, want %v", when, got, want)
		}
		if p := x.Objects[key]; p != nil && len(x.ServicesOf(p)) != services {
			t.Errorf("%s: services %v", when, x.ServicesOf(p))
		}
	}
	check("stored", 1, 1, 1, 1, 500)
	w.Put(t, cluster.Pods, "p", "metadata: {labels: {a: c}}\nspec: {nodeName: node1, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}\nstatus: {phase: Succeeded}")
	check("relabelled, without an owner, ended", 0, 1, 0, 0, 0)
	x.Remove(key)
	check("removed", 0, 0, 0, 0, 0)
}

func TestObjectIsActiveUntilItEnds(t *testing.T) {
	t.Parallel()
	for phase, want := range map[string]bool{"Pending": true, "Running": true, "Succeeded": false, "Failed": false} {
		w := clustertest.New()
		key := w.Put(t, cluster.Pods, "p", "status: {phase: "+phase+"}")
		if got := w.Memory.Index.Objects[key].Active(); got != want {
			t.Errorf("%s: %v", phase, got)
		}
	}
}

func TestTurnCreatesNothingInATerminatingNamespace(t *testing.T) {
	t.Parallel()
	for deletion, want := range map[string]int{"": 1, "2026-01-01T00:00:00Z": 0} {
		w := clustertest.New()
		metadata := map[string]any{"name": "default", "uid": "default"}
		if deletion != "" {
			metadata["deletionTimestamp"] = deletion
		}
		steptest.Put(t, w.Store, storage.Key{Bucket: "namespaces", Name: "default"}, map[string]any{"metadata": metadata})
		requests := w.Step(t, func(turn *cluster.Turn) {
			turn.Create("user", storage.Key{Bucket: cluster.ReplicaSets, Name: "default/set"}, cluster.Pods, &corev1.Pod{})
		})
		if len(requests) != want {
			t.Errorf("%q: %d requests, want %d", deletion, len(requests), want)
		}
	}
}

func TestTurnDeletesTheObjectThatItHasSeen(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.Pods, "p", "{}")
	requests := w.Step(t, func(turn *cluster.Turn) {
		turn.Delete("user", key, w.Memory.Index.Objects[key], metav1.DeleteOptions{})
	})
	if got, want := fmt.Sprintf("%s %s", clustertest.Lines(requests), requests[0].Body), `DELETE /api/v1/namespaces/default/pods/p {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"p"}}`; got != want {
		t.Errorf("the request is %s\nwant %s", got, want)
	}
}

func TestTurnKeepsTheEarliestTimer(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := storage.Key{Bucket: cluster.Pods, Name: "default/p"}
	w.Step(t, func(turn *cluster.Turn) {
		turn.Later(key, w.Now.Add(2*time.Minute))
		turn.Later(key, w.Now.Add(time.Minute))
		turn.Later(key, w.Now.Add(3*time.Minute))
		turn.Later(key, time.Time{})
	})
	if got := w.Memory.Timers[key]; !got.Equal(w.Now.Add(time.Minute)) {
		t.Errorf("the timer is at %v", got)
	}
	w.Step(t, func(turn *cluster.Turn) { turn.Later(key, w.Now) })
	if got := w.Memory.Timers[key]; !got.After(w.Now) {
		t.Errorf("a time that is reached sets the timer to %v", got)
	}
}

func TestHashOfChangesWithTemplateAndCollisions(t *testing.T) {
	t.Parallel()
	template := func(image string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
	}
	one := int32(1)
	a, same, other, again := cluster.HashOf(template("i"), nil), cluster.HashOf(template("i"), nil), cluster.HashOf(template("j"), nil), cluster.HashOf(template("i"), &one)
	if a != same || a == other || a == again {
		t.Errorf("the hashes are %s, %s, %s and %s", a, same, other, again)
	}
}

func TestFirstToGoPrefersPodsOfLeastUse(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	for name, manifest := range map[string]string{
		"ready":   "spec: {nodeName: node1}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}",
		"unready": "spec: {nodeName: node1}\nstatus: {phase: Running}",
		"unbound": "status: {phase: Pending}",
		"cheap":   "metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: '-1'}}\nspec: {nodeName: node1}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}",
	} {
		w.Put(t, cluster.Pods, name, manifest)
	}
	var pods []*cluster.Object
	for _, key := range w.Memory.Index.Of(cluster.Pods) {
		pods = append(pods, w.Memory.Index.Objects[key])
	}
	slices.SortFunc(pods, cluster.FirstToGo)
	var got []string
	for _, p := range pods {
		_, name := step.SplitName(p.Key.Name)
		got = append(got, name)
	}
	if want := []string{"unbound", "unready", "cheap", "ready"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

func TestResourceOfNamesThePathsOfBuckets(t *testing.T) {
	t.Parallel()
	for bucket, want := range map[string]string{
		cluster.Pods: "/api/v1/namespaces/default/pods/x", cluster.Nodes: "/api/v1/nodes/x",
		cluster.Jobs: "/apis/batch/v1/namespaces/default/jobs/x", cluster.Deployments: "/apis/apps/v1/namespaces/default/deployments/x",
	} {
		r := cluster.ResourceOf(bucket)
		name := "x"
		if r.Namespaced {
			name = "default/x"
		}
		if got := r.Object(storage.Key{Bucket: bucket, Name: name}); got != want {
			t.Errorf("%s is at %s, want %s", bucket, got, want)
		}
	}
	if kind := cluster.KindOf("Deployment"); kind.GroupVersion() != appsv1.SchemeGroupVersion {
		t.Errorf("the kind is %v", kind)
	}
}
