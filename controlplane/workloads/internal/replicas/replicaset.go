// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// ReplicaSet keeps the number of Pods of a ReplicaSet, or of a
// ReplicationController, which is one without a template hash.
func ReplicaSet(common *cluster.Turn, key storage.Key) {
	t := &turn{common}
	self := t.Index.Objects[key]
	if self == nil {
		return
	}
	var set *appsv1.ReplicaSet
	user, gvk := step.KubeSystem+"replicaset-controller", appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	var original *corev1.ReplicationController
	if key.Bucket == cluster.Controllers {
		user, gvk = step.KubeSystem+"replication-controller", corev1.SchemeGroupVersion.WithKind("ReplicationController")
		original = cluster.Stored[corev1.ReplicationController](t.Turn, key)
		set = asReplicaSet(original)
	} else {
		set = cluster.Stored[appsv1.ReplicaSet](t.Turn, key)
	}
	if set == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	var active []*cluster.Object
	terminating := int32(0)
	for _, p := range t.Claim(user, self, gvk, cluster.Pods, selector) {
		switch {
		case p.Active():
			active = append(active, p)
		case p.Deleting && !p.Ended():
			terminating++
		}
	}
	want := int(*set.Spec.Replicas)
	if !self.Deleting {
		switch n := want - len(active); {
		case n > 0:
			sent := len(t.Requests)
			for range min(n, cluster.Burst) {
				t.Create(user, key, cluster.Pods, cluster.PodOf(&set.Spec.Template, set.Name+"-", cluster.Reference(gvk, set.Name, set.UID)))
				t.TellFailure(user, self)
			}
			if len(t.Requests) > sent && t.Failures[key] == "" {
				return // the status is written once, when the Pods exist
			}
		case n < 0:
			slices.SortFunc(active, cluster.FirstToGo)
			for _, p := range active[:min(-n, cluster.Burst)] {
				t.Delete(user, key, p, metav1.DeleteOptions{})
				t.TellDeletion(user, self, p)
			}
		}
	}
	status := t.replicaSetStatus(set, active, terminating)
	if key.Bucket == cluster.Controllers {
		status.TerminatingReplicas = nil // not reported of these
	}
	if equality.Semantic.DeepEqual(status, set.Status) {
		return
	}
	if original == nil {
		set.Status = status
		t.Update(user, key, "status", set)
		return
	}
	original.Status = asReplicationStatus(status)
	t.Update(user, key, "status", original)
}

// replicaSetStatus counts the Pods of a ReplicaSet.
func (t *turn) replicaSetStatus(set *appsv1.ReplicaSet, active []*cluster.Object, terminating int32) appsv1.ReplicaSetStatus {
	status := appsv1.ReplicaSetStatus{
		Replicas: int32(len(active)), TerminatingReplicas: &terminating,
		ObservedGeneration: set.Generation, Conditions: set.Status.Conditions,
	}
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	key := storage.Key{Bucket: cluster.ReplicaSets, Name: set.Namespace + "/" + set.Name}
	if set.Kind == "ReplicationController" {
		key.Bucket = cluster.Controllers
	}
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			status.FullyLabeledReplicas++
		}
		if p.Ready {
			status.ReadyReplicas++
		}
		if t.Available(key, p, set.Spec.MinReadySeconds) {
			status.AvailableReplicas++
		}
	}
	failing := slices.IndexFunc(status.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch message := t.Failures[key]; {
	case message != "" && failing < 0:
		status.Conditions = append(slices.Clone(status.Conditions), appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message,
			LastTransitionTime: t.Stamp(),
		})
	case message == "" && failing >= 0:
		status.Conditions = slices.Delete(slices.Clone(status.Conditions), failing, failing+1)
	}
	return status
}

// asReplicaSet converts a ReplicationController to a ReplicaSet.
func asReplicaSet(c *corev1.ReplicationController) *appsv1.ReplicaSet {
	if c == nil || c.Spec.Template == nil {
		return nil
	}
	out := &appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{Kind: "ReplicationController"}, ObjectMeta: c.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{
			Replicas: c.Spec.Replicas, MinReadySeconds: c.Spec.MinReadySeconds,
			Selector: &metav1.LabelSelector{MatchLabels: c.Spec.Selector}, Template: *c.Spec.Template,
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: c.Status.Replicas, FullyLabeledReplicas: c.Status.FullyLabeledReplicas, ReadyReplicas: c.Status.ReadyReplicas,
			AvailableReplicas: c.Status.AvailableReplicas, ObservedGeneration: c.Status.ObservedGeneration,
		},
	}
	for _, x := range c.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(x.Type), Status: x.Status, LastTransitionTime: x.LastTransitionTime, Reason: x.Reason, Message: x.Message,
		})
	}
	return out
}

func asReplicationStatus(s appsv1.ReplicaSetStatus) corev1.ReplicationControllerStatus {
	out := corev1.ReplicationControllerStatus{
		Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas, ReadyReplicas: s.ReadyReplicas,
		AvailableReplicas: s.AvailableReplicas, ObservedGeneration: s.ObservedGeneration,
	}
	for _, x := range s.Conditions {
		out.Conditions = append(out.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(x.Type), Status: x.Status, LastTransitionTime: x.LastTransitionTime, Reason: x.Reason, Message: x.Message,
		})
	}
	return out
}
