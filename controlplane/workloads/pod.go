// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// kubelet is who the simulated node acts as.
const kubelet = step.NodePrefix + NodeName

// lookPod schedules a Pod, runs it on the node, and ends it.
func (t *turn) lookPod(key storage.Key) {
	p := t.index.objects[key]
	switch {
	case p == nil:
	case p.tracked && p.owner.key.Bucket == jobs && (t.index.objects[p.owner.key] == nil || t.index.objects[p.owner.key].uid != p.owner.uid):
		t.untrack(key, p)
	case p.deleting:
		t.endPod(p)
	case p.ended():
	case p.node == "":
		t.schedule(p)
	case p.node == NodeName:
		t.run(p)
	}
}

// schedule binds a Pod to the node.
func (t *turn) schedule(p *object) {
	pod := stored[corev1.Pod](t, p.key)
	node := t.index.objects[nodeKey()]
	switch {
	case pod == nil || pod.Spec.SchedulerName != corev1.DefaultSchedulerName || len(pod.Spec.SchedulingGates) > 0:
		return
	case t.fateOf(p).Fate == Unschedulable:
		t.unschedulable(pod, "1 node(s) are scripted not to take the pod.")
		return
	case node != nil && node.cordoned && !toleratesCordon(pod):
		t.unschedulable(pod, "1 node(s) were unschedulable.")
		return
	}
	binding := &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: NodeName},
	}
	t.written.Add(p.key)
	t.send(step.Request{
		User: step.Scheduler, Method: http.MethodPost, Path: resourceOf(pods).Object(p.key) + "/binding",
		ContentType: step.Protobuf, Body: step.Encode(binding), Subject: step.Subject{Key: p.key},
	})
}

// unschedulable reports why no node takes a Pod.
func (t *turn) unschedulable(pod *corev1.Pod, why string) {
	t.setPodStatus(step.Scheduler, pod, func(s *corev1.PodStatus) {
		setPodCondition(s, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/1 nodes are available: " + why, LastTransitionTime: t.stamp(), ObservedGeneration: pod.Generation,
		})
	})
}

// toleratesCordon tells whether a Pod goes to a node that takes no more, as
// those of DaemonSets do.
func toleratesCordon(pod *corev1.Pod) bool {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Operator == corev1.TolerationOpExists && (t.Key == "" || t.Key == cordon.Key) && (t.Effect == "" || t.Effect == cordon.Effect)
	})
}

// run brings the status of a Pod up to what its fate has made of it by now.
func (t *turn) run(p *object) {
	outcome := t.fateOf(p)
	begun, ok := t.begun[p.uid]
	if !ok {
		if begun = p.startedAt; begun.IsZero() {
			begun = t.now
		}
		t.begun[p.uid] = begun
	}
	due := begun.Add(outcome.After)
	come := !due.After(t.now)
	if !come {
		t.later(p.key, due)
	}
	if outcome.Fate == Never && !p.startedAt.IsZero() && p.observed == p.generation {
		return // whoever changes its status wants it so
	}
	if outcome.Fate == Ready && come && p.ready && p.observed == p.generation {
		return
	}
	pod := stored[corev1.Pod](t, p.key)
	if pod == nil {
		return
	}
	life := lifeOf(pod, outcome.Fate, come)
	if life.state == crashing {
		var next time.Time
		life.restarts, life.backoff, next = crashes(due, t.now)
		t.later(p.key, next)
	}
	life.now, life.begun = t.stamp(), metav1.NewTime(begun).Rfc3339Copy()
	t.setPodStatus(kubelet, pod, func(s *corev1.PodStatus) { life.report(pod, s, t.addressOf(pod)) })
}

func (t *turn) addressOf(pod *corev1.Pod) string {
	switch {
	case pod.Spec.HostNetwork:
		return nodeAddress
	case pod.Status.PodIP != "":
		return pod.Status.PodIP
	}
	return t.index.address(storage.Key{Bucket: pods, Name: pod.Namespace + "/" + pod.Name})
}

// setPodStatus writes the status of a Pod if change makes a difference.
func (t *turn) setPodStatus(user string, pod *corev1.Pod, change func(*corev1.PodStatus)) {
	before := pod.Status.DeepCopy()
	change(&pod.Status)
	if equality.Semantic.DeepEqual(before, &pod.Status) {
		return
	}
	t.update(user, storage.Key{Bucket: pods, Name: pod.Namespace + "/" + pod.Name}, "status", pod)
}

// endPod ends a Pod that is marked as deleted. One that somebody holds by a
// finalizer reports its end first.
func (t *turn) endPod(p *object) {
	if p.node != NodeName || p.grace == 0 && p.ended() {
		return
	}
	if pod := stored[corev1.Pod](t, p.key); pod != nil && !p.ended() && len(pod.Finalizers) > 0 {
		end := life{state: failed, now: t.stamp(), begun: metav1.NewTime(p.startedAt), exitCode: 137}
		if p.startedAt.IsZero() {
			end.begun = t.stamp()
		}
		t.setPodStatus(kubelet, pod, func(s *corev1.PodStatus) { end.report(pod, s, t.addressOf(pod)) })
		return
	}
	if p.grace == 0 {
		return
	}
	now := int64(0)
	t.delete(kubelet, p.key, p, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// Delays between the restarts of a container.
const (
	firstBackoff = 10 * time.Second
	lastBackoff  = 5 * time.Minute
)

// crashes returns how often a container has been restarted that crashes at once
// since due, for how long it now stays down, and when it is restarted next.
func crashes(due, now time.Time) (restarts int32, backoff time.Duration, next time.Time) {
	restarts, backoff, next = 1, firstBackoff, due.Add(firstBackoff)
	for !next.After(now) {
		restarts++
		backoff = min(2*backoff, lastBackoff)
		next = next.Add(backoff)
	}
	return restarts, backoff, next
}

func setPodCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == c.Type {
			if s.Conditions[i].Status == c.Status {
				c.LastTransitionTime = s.Conditions[i].LastTransitionTime
			}
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}
