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

func TestReplicaSetKeepsTheNumberOfPodsOfAReplicationController(t *testing.T) {
	t.Parallel()
	const (
		spec = "selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"
		pod  = "metadata: {labels: {a: b}, ownerReferences: [{apiVersion: v1, kind: ReplicationController, name: rc, uid: rc, controller: true}]}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}"
	)
	w := clustertest.New()
	key := w.Put(t, cluster.Controllers, "rc", "spec: {replicas: 1, "+spec)
	requests := w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })
	if got, want := clustertest.Lines(requests), "POST /api/v1/namespaces/default/pods"; got != want {
		t.Fatalf("requests:\n%s\nwant\n%s", got, want)
	}
	if o := clustertest.Body[corev1.Pod](t, requests[0]).OwnerReferences[0]; o.Kind != "ReplicationController" || o.APIVersion != "v1" || o.UID != "rc" {
		t.Errorf("the owner is %+v", o)
	}
	w.Put(t, cluster.Pods, "p", pod)
	requests = w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })
	if got, want := clustertest.Lines(requests), "PUT /api/v1/namespaces/default/replicationcontrollers/rc/status"; got != want {
		t.Fatalf("requests:\n%s\nwant\n%s", got, want)
	}
	s := clustertest.Body[corev1.ReplicationController](t, requests[0]).Status
	if got := fmt.Sprint(s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.FullyLabeledReplicas, len(s.Conditions)); got != "1 1 1 1 0" {
		t.Errorf("the status is %+v", s)
	}
	w.Put(t, cluster.Controllers, "rc", "spec: {replicas: 1, "+spec+"\nstatus: {replicas: 1, readyReplicas: 1, availableReplicas: 1, fullyLabeledReplicas: 1}")
	if got := clustertest.Lines(w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })); got != "" {
		t.Errorf("a status that is stored is written again:\n%s", got)
	}
}

func TestReplicaSetReportsThatPodsCannotBeCreated(t *testing.T) {
	t.Parallel()
	const failing = "\nstatus: {terminatingReplicas: 0, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]}"
	for name, c := range map[string]struct {
		bucket, spec, failure, want string
	}{
		"a failure":                            {cluster.ReplicaSets, "spec: {replicas: 1, " + template + "}", "quota", "[ReplicaFailure True FailedCreate quota]"},
		"no failure any more":                  {cluster.ReplicaSets, "spec: {replicas: 0, " + template + "}" + failing, "", "[]"},
		"a failure of a ReplicationController": {cluster.Controllers, "spec: {replicas: 1, selector: {a: b}, template: {metadata: {labels: {a: b}}}}", "quota", "[ReplicaFailure True FailedCreate quota]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New()
			key := w.Put(t, c.bucket, "web", c.spec)
			if c.failure != "" {
				w.Memory.Failures[key] = c.failure
			}
			requests := w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })
			last, got := requests[len(requests)-1], []string{}
			if c.bucket == cluster.Controllers {
				for _, x := range clustertest.Body[corev1.ReplicationController](t, last).Status.Conditions {
					got = append(got, fmt.Sprintf("%s %s %s %s", x.Type, x.Status, x.Reason, x.Message))
				}
			} else {
				for _, x := range clustertest.Body[appsv1.ReplicaSet](t, last).Status.Conditions {
					got = append(got, fmt.Sprintf("%s %s %s %s", x.Type, x.Status, x.Reason, x.Message))
				}
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("the conditions are %v, want %s", got, c.want)
			}
		})
	}
}

func TestReplicaSetCountsPodsByTheirState(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.ReplicaSets, "web", "spec: {replicas: 2, minReadySeconds: 120, "+template+"}")
	pod := func(name, metadata, since string) {
		w.Put(t, cluster.Pods, name, "metadata: {"+metadata+"labels: {a: b}, "+owner+"}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '"+since+"'}]}")
	}
	pod("available", "", "2025-12-31T23:00:00Z")
	pod("ready", "", "2025-12-31T23:59:00Z")
	pod("terminating", "deletionTimestamp: '2026-01-01T00:00:00Z', ", "2025-12-31T23:00:00Z")
	requests := w.Step(t, func(turn *cluster.Turn) { replicas.ReplicaSet(turn, key) })
	s := clustertest.Body[appsv1.ReplicaSet](t, requests[0]).Status
	if got := fmt.Sprint(s.Replicas, s.ReadyReplicas, s.AvailableReplicas, *s.TerminatingReplicas); got != "2 2 1 1" {
		t.Errorf("replicas, ready, available and terminating are %s", got)
	}
	if got := w.Memory.Timers[key].Format("15:04:05"); got != "00:01:00" {
		t.Errorf("the next look is at %s", got)
	}
}
