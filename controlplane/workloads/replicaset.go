// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// burst is how many Pods a ReplicaSet makes or deletes at once.
const burst = 500

// lookReplicaSet keeps the number of Pods of a ReplicaSet, or of a
// ReplicationController, which is one without a template hash.
func (t *turn) lookReplicaSet(key storage.Key) {
	self := t.index.objects[key]
	if self == nil {
		return
	}
	var set *appsv1.ReplicaSet
	user, gvk := step.KubeSystem+"replicaset-controller", appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	var original *corev1.ReplicationController
	if key.Bucket == controllers {
		user, gvk = step.KubeSystem+"replication-controller", corev1.SchemeGroupVersion.WithKind("ReplicationController")
		original = stored[corev1.ReplicationController](t, key)
		set = asReplicaSet(original)
	} else {
		set = stored[appsv1.ReplicaSet](t, key)
	}
	if set == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	var active []*object
	terminating := int32(0)
	for _, p := range t.claim(user, self, gvk, pods, selector) {
		switch {
		case p.active():
			active = append(active, p)
		case p.deleting && !p.ended():
			terminating++
		}
	}
	want := int(*set.Spec.Replicas)
	if !self.deleting {
		switch n := want - len(active); {
		case n > 0:
			sent := len(t.requests)
			for range min(n, burst) {
				t.create(user, key, pods, podOf(&set.Spec.Template, set.Name+"-", reference(gvk, set.Name, set.UID)))
			}
			if len(t.requests) > sent && t.failures[key] == "" {
				return // one report, once they are there, tells all
			}
		case n < 0:
			slices.SortFunc(active, firstToGo)
			for _, p := range active[:min(-n, burst)] {
				t.delete(user, key, p, metav1.DeleteOptions{})
			}
		}
	}
	status := t.replicaSetStatus(set, active, terminating)
	if key.Bucket == controllers {
		status.TerminatingReplicas = nil // not reported of these
	}
	if equality.Semantic.DeepEqual(status, set.Status) {
		return
	}
	if original == nil {
		set.Status = status
		t.update(user, key, "status", set)
		return
	}
	original.Status = asReplicationStatus(status)
	t.update(user, key, "status", original)
}

// replicaSetStatus counts the Pods of a ReplicaSet.
func (t *turn) replicaSetStatus(set *appsv1.ReplicaSet, active []*object, terminating int32) appsv1.ReplicaSetStatus {
	status := appsv1.ReplicaSetStatus{
		Replicas: int32(len(active)), TerminatingReplicas: &terminating,
		ObservedGeneration: set.Generation, Conditions: set.Status.Conditions,
	}
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	key := storage.Key{Bucket: replicaSets, Name: set.Namespace + "/" + set.Name}
	if set.Kind == "ReplicationController" {
		key.Bucket = controllers
	}
	for _, p := range active {
		if template.Matches(labels.Set(p.labels)) {
			status.FullyLabeledReplicas++
		}
		if p.ready {
			status.ReadyReplicas++
		}
		if t.available(key, p, set.Spec.MinReadySeconds) {
			status.AvailableReplicas++
		}
	}
	failing := slices.IndexFunc(status.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch message := t.failures[key]; {
	case message != "" && failing < 0:
		status.Conditions = append(slices.Clone(status.Conditions), appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message,
			LastTransitionTime: t.stamp(),
		})
	case message == "" && failing >= 0:
		status.Conditions = slices.Delete(slices.Clone(status.Conditions), failing, failing+1)
	}
	return status
}

// available tells whether a Pod has been ready for long enough; an owner that
// has to wait for that is looked at again.
func (t *turn) available(owner storage.Key, p *object, minReady int32) bool {
	if !p.ready {
		return false
	}
	at := p.readySince.Add(time.Duration(minReady) * time.Second)
	if minReady == 0 || !at.After(t.now) {
		return true
	}
	t.later(owner, at)
	return false
}

// podOf makes a Pod of a template.
func podOf(template *corev1.PodTemplateSpec, generateName string, owner metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: generateName, Labels: template.Labels, Annotations: template.Annotations,
			Finalizers: template.Finalizers, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// firstToGo orders Pods by how little is lost with them.
func firstToGo(a, b *object) int {
	yes := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	phase := func(p *object) int {
		switch p.phase {
		case corev1.PodPending, "":
			return 0
		case corev1.PodUnknown:
			return 1
		}
		return 2
	}
	return cmp.Or(
		cmp.Compare(yes(a.node != ""), yes(b.node != "")),
		cmp.Compare(phase(a), phase(b)),
		cmp.Compare(yes(a.ready), yes(b.ready)),
		cmp.Compare(a.cost, b.cost),
		b.readySince.Compare(a.readySince),
		cmp.Compare(b.restarts, a.restarts),
		cmp.Compare(b.created, a.created),
	)
}

// asReplicaSet shows a ReplicationController as a ReplicaSet.
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

// kindOf is the kind of a type of the group apps.
func kindOf(name string) schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind(name) }
