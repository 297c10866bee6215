// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const (
	garbageCollector = step.KubeSystem + "pod-garbage-collector"
	// quarantine is how long Pods are kept whose node does not exist: it may still be created.
	quarantine = 40 * time.Second
	// mostEnded is how many terminated Pods are kept, sweep how often the others are deleted.
	mostEnded = 12500
	sweep     = 20 * time.Second
)

// Ended is the key that is due when there may be too many terminated Pods.
func Ended() storage.Key { return storage.Key{Bucket: cluster.Pods} }

// Collect deletes a Pod that no kubelet will delete: its node is gone or out of service, or
// it never had one. It reports whether the Pod is such a Pod.
func (c *Controllers) Collect(t *cluster.Turn, p *cluster.Object) bool {
	node := t.Index.Node(p.Node)
	switch {
	case p.Node == "":
		if !p.Deleting {
			return false
		}
		remove(t, p, "")
	case node == nil:
		since, known := c.missing[p.Node]
		if !known {
			since = t.Now
			c.missing[p.Node] = since
		}
		if over := since.Add(quarantine); over.After(t.Now) {
			t.Later(p.Key, over)
			return true
		}
		remove(t, p, "PodGC: node no longer exists")
	case p.Deleting && !node.Ready && slices.ContainsFunc(node.Room.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService }):
		remove(t, p, "")
	default:
		return false
	}
	return true
}

// remove deletes a Pod at once. It sets the phase of one that has not terminated to Failed
// before, with why as a condition unless that is empty.
func remove(t *cluster.Turn, p *cluster.Object, why string) {
	pod := cluster.Stored[corev1.Pod](t, p.Key)
	if pod == nil || p.Ended() && p.Deleting && p.Grace == 0 { // it waits for its finalizers
		return
	}
	if !p.Ended() {
		status := map[string]any{"phase": corev1.PodFailed, "observedGeneration": pod.Generation}
		if why != "" {
			status["conditions"] = []corev1.PodCondition{disrupted(t, pod, "DeletionByPodGC", why)}
		}
		patchStatus(t, garbageCollector, p, status)
	}
	now := int64(0)
	t.Delete(garbageCollector, p.Key, p, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// Forget observes the deletion of a Pod.
func (c *Controllers) Forget(m *cluster.Memory, p *cluster.Object) {
	delete(c.evictions, p.UID)
	if m.Index.CountOn(p.Node) == 0 {
		delete(c.missing, p.Node)
	}
}

// Sweep deletes terminated Pods when there are too many of them, the oldest first.
func (c *Controllers) Sweep(t *cluster.Turn) {
	many := t.Index.CountEnded() - mostEnded
	if many <= 0 {
		return
	}
	if next := c.collected.Add(sweep); t.Now.Before(next) {
		t.Later(Ended(), next)
		return
	}
	c.collected = t.Now
	for _, p := range t.Index.Ended()[:many] {
		if !t.Has(p.Key) {
			remove(t, p, "")
		}
	}
}

// TooMany reports whether there are more terminated Pods than are kept.
func TooMany(m *cluster.Memory) bool { return m.Index.CountEnded() > mostEnded }
