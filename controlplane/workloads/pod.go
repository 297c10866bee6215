// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/jobs"
	"github.com/steer-dev/steer/storage"
)

// kubelet is the user name of a node.
func kubelet(node string) string { return step.NodePrefix + node }

// runs reports whether the Pods of a node are run: it is simulated and its status says ready, or
// it is the node of the start, which is about to register.
func (t *visit) runs(name string) bool {
	if node := t.Index.Node(name); node != nil {
		return node.Simulated && node.Ready
	}
	return name == NodeName && !t.controller.noNode
}

// lookPod schedules a Pod, runs it on the node, and ends it.
func (t *visit) lookPod(key storage.Key) {
	p := t.Index.Objects[key]
	switch {
	case p == nil:
	case p.Tracked && p.Owner.Key.Bucket == cluster.Jobs && (t.Index.Objects[p.Owner.Key] == nil || t.Index.Objects[p.Owner.Key].UID != p.Owner.UID):
		jobs.Release(t.Turn, key, p)
	case (p.Node != NodeName || t.controller.noNode) && t.controller.nodes.Collect(t.Turn, p):
	case p.Deleting:
		t.endPod(p)
	case t.controller.nodes.Evict(t.Turn, p), p.Ended():
	case p.Node == "":
		t.schedule(p)
	case t.runs(p.Node):
		t.run(p)
	default:
		t.controller.nodes.Unready(t.Turn, p)
	}
}

// run updates the status of a Pod to that of its outcome at this time.
func (t *visit) run(p *cluster.Object) {
	outcome := t.controller.fateOf(p)
	begun, ok := t.controller.begun[p.UID]
	if !ok {
		if begun = p.StartedAt; begun.IsZero() {
			begun = t.Now
		}
		t.controller.begun[p.UID] = begun
	}
	due := begun.Add(outcome.After)
	come := !due.After(t.Now)
	if !come {
		t.Later(p.Key, due)
	}
	if outcome.Fate == Never && !p.StartedAt.IsZero() && p.Observed == p.Generation {
		return // its status was changed on purpose
	}
	if outcome.Fate == Ready && come && p.Ready && p.Observed == p.Generation {
		return
	}
	pod := cluster.Stored[corev1.Pod](t.Turn, p.Key)
	if pod == nil {
		return
	}
	life := lifeOf(pod, outcome, come)
	if life.state == crashing {
		var next time.Time
		life.restarts, life.backoff, next = crashes(due, t.Now)
		t.Later(p.Key, next)
	}
	life.now, life.begun = t.Stamp(), metav1.NewTime(begun).Rfc3339Copy()
	before := pod.Status.ContainerStatuses
	if t.setPodStatus(kubelet(p.Node), pod, func(s *corev1.PodStatus) { life.report(pod, s, t.hostOf(pod), t.addressOf(pod)) }) {
		t.tellStarts(pod, before, life.state == crashing)
	}
}

// hostOf is the address of the node of a Pod.
func (t *visit) hostOf(pod *corev1.Pod) string {
	if node := t.Index.Node(pod.Spec.NodeName); node != nil && node.HostAddress != "" {
		return node.HostAddress
	}
	return nodeAddress
}

func (t *visit) addressOf(pod *corev1.Pod) string {
	switch {
	case pod.Spec.HostNetwork:
		return t.hostOf(pod)
	case pod.Status.PodIP != "":
		return pod.Status.PodIP
	}
	return t.Index.Address(podKey(pod))
}

// setPodStatus updates the status of a Pod if it changes, and reports whether it does.
func (t *visit) setPodStatus(user string, pod *corev1.Pod, change func(*corev1.PodStatus)) bool {
	before := pod.Status.DeepCopy()
	change(&pod.Status)
	if equality.Semantic.DeepEqual(before, &pod.Status) {
		return false
	}
	t.Update(user, podKey(pod), "status", pod)
	return true
}

func podKey(pod *corev1.Pod) storage.Key {
	return storage.Key{Bucket: cluster.Pods, Name: pod.Namespace + "/" + pod.Name}
}

// endPod ends a Pod that is marked as deleted. One that is held by a
// finalizer reports its end first.
func (t *visit) endPod(p *cluster.Object) {
	if !t.runs(p.Node) {
		t.controller.nodes.Unready(t.Turn, p)
		return
	}
	if p.Grace == 0 && p.Ended() {
		return
	}
	if pod := cluster.Stored[corev1.Pod](t.Turn, p.Key); pod != nil && !p.Ended() && len(pod.Finalizers) > 0 {
		end := life{state: failed, now: t.Stamp(), begun: metav1.NewTime(p.StartedAt), exitCode: 137}
		if p.StartedAt.IsZero() {
			end.begun = t.Stamp()
		}
		before := pod.Status.ContainerStatuses
		t.setPodStatus(kubelet(p.Node), pod, func(s *corev1.PodStatus) { end.report(pod, s, t.hostOf(pod), t.addressOf(pod)) })
		t.tellStops(pod, before)
		return
	}
	if p.Grace == 0 {
		return
	}
	now := int64(0)
	t.Delete(kubelet(p.Node), p.Key, p, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if pod := cluster.Stored[corev1.Pod](t.Turn, p.Key); pod != nil && !p.Ended() {
		t.tellStops(pod, pod.Status.ContainerStatuses)
	}
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
