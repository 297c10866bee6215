// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/replicas"
)

const (
	template = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}"
	owner    = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]"
)

func TestReplicaSetCreatesMissingPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.ReplicaSets, "web", "spec: {replicas: 2, "+template+"}")
	requests := w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })
	if got, want := clustertest.Lines(requests), "POST /api/v1/namespaces/default/pods\nPOST /api/v1/namespaces/default/pods"; got != want {
		t.Fatalf("requests:\n%s\nwant\n%s", got, want)
	}
	p := clustertest.Body[corev1.Pod](t, requests[0])
	if o := p.OwnerReferences; p.GenerateName != "web-" || p.Labels["a"] != "b" || len(o) != 1 || o[0].UID != "web" || !*o[0].Controller {
		t.Errorf("the Pod is %+v", p.ObjectMeta)
	}
}

func TestReplicaSetDeletesTheLeastUsefulPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.ReplicaSets, "web", "spec: {replicas: 1, "+template+"}")
	pod := func(name, rest string) {
		w.Put(t, cluster.Pods, name, "metadata: {labels: {a: b}, "+owner+"}\n"+rest)
	}
	pod("ready", "spec: {nodeName: node1}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}")
	pod("unready", "spec: {nodeName: node1}\nstatus: {phase: Running}")
	pod("pending", "status: {phase: Pending}")
	pod("failed", "status: {phase: Failed}") // does not count
	got := clustertest.Lines(w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) }))
	if want := "DELETE /api/v1/namespaces/default/pods/pending\nDELETE /api/v1/namespaces/default/pods/unready\nPUT /apis/apps/v1/namespaces/default/replicasets/web/status"; got != want {
		t.Errorf("requests:\n%s\nwant\n%s", got, want)
	}
}

func TestReplicaSetAdoptsAndReleasesPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.ReplicaSets, "web", "spec: {replicas: 1, "+template+"}")
	w.Put(t, cluster.Pods, "orphan", "metadata: {labels: {a: b}}")
	w.Put(t, cluster.Pods, "relabelled", "metadata: {labels: {a: c}, "+owner+"}")
	got := clustertest.Lines(w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) }))
	if want := "PATCH /api/v1/namespaces/default/pods/relabelled\nPATCH /api/v1/namespaces/default/pods/orphan"; got[:min(len(got), len(want))] != want {
		t.Errorf("requests:\n%s\nwant\n%s", got, want)
	}
}

func TestReplicaSetReportsItsPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.ReplicaSets, "web", "spec: {replicas: 1, "+template+"}")
	w.Put(t, cluster.Pods, "p", "metadata: {labels: {a: b}, "+owner+"}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}")
	requests := w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })
	if got, want := clustertest.Lines(requests), "PUT /apis/apps/v1/namespaces/default/replicasets/web/status"; got != want {
		t.Fatalf("requests:\n%s\nwant\n%s", got, want)
	}
	s := clustertest.Body[appsv1.ReplicaSet](t, requests[0]).Status
	if got := fmt.Sprint(s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.FullyLabeledReplicas); got != "1 1 1 1" {
		t.Errorf("the status is %+v", s)
	}
}

func TestDeploymentCreatesItsReplicaSet(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.Deployments, "web", "spec: {replicas: 3, "+template+", strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}}")
	requests := w.Step(t, func(turn *cluster.Turn) { replicas.Deployment(turn, key) })
	if len(requests) == 0 || requests[0].Method+" "+requests[0].Path != "POST /apis/apps/v1/namespaces/default/replicasets" {
		t.Fatalf("requests:\n%s", clustertest.Lines(requests))
	}
	set := clustertest.Body[appsv1.ReplicaSet](t, requests[0])
	hash := set.Labels["pod-template-hash"]
	if set.Name != "web-"+hash || hash == "" || *set.Spec.Replicas != 3 || set.Spec.Selector.MatchLabels["pod-template-hash"] != hash ||
		set.Annotations["deployment.kubernetes.io/revision"] != "1" {
		t.Errorf("the ReplicaSet is %+v", set)
	}
}

func TestDeploymentRollsWithinItsBounds(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	const spec = ", minReadySeconds: 0, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}}"
	key := w.Put(t, cluster.Deployments, "web", "metadata: {annotations: {deployment.kubernetes.io/revision: '1'}}\nspec: {replicas: 3, "+template+spec)
	w.Put(t, cluster.ReplicaSets, "old", `
metadata:
  labels: {a: b}
  annotations: {deployment.kubernetes.io/revision: '1', deployment.kubernetes.io/desired-replicas: '3', deployment.kubernetes.io/max-replicas: '4'}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]
spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: before}]}}}
status: {replicas: 3, readyReplicas: 3, availableReplicas: 3}`)
	requests := w.Step(t, func(turn *cluster.Turn) { replicas.Deployment(turn, key) })
	if len(requests) == 0 || requests[0].Method != "POST" {
		t.Fatalf("requests:\n%s", clustertest.Lines(requests))
	}
	if set := clustertest.Body[appsv1.ReplicaSet](t, requests[0]); *set.Spec.Replicas != 1 { // 3 and a surge of 1, less 3 old ones
		t.Errorf("the new ReplicaSet has %d replicas, want 1", *set.Spec.Replicas)
	}
}
