// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
)

// evictor is the name of the taint eviction controller in Events.
const evictor = "taint-eviction-controller"

// Evict deletes a Pod once it does not tolerate the taints of its node any more, and reports
// whether it does so now. Other taints do not change a time that has begun to run; it is
// cancelled when the node has none.
func (c *Controllers) Evict(t *cluster.Turn, p *cluster.Object) bool {
	var taints []corev1.Taint
	if node := t.Index.Node(p.Node); node != nil {
		taints = node.TaintsOf(corev1.TaintEffectNoExecute)
	}
	if len(taints) == 0 {
		c.spare(t, p)
		return false
	}
	pod := cluster.Stored[corev1.Pod](t, p.Key)
	if pod == nil {
		return false
	}
	left, bounded := patience(pod.Spec.Tolerations, taints)
	if !bounded {
		c.spare(t, p)
		return false
	}
	at, begun := c.evictions[p.UID]
	if !begun || left == 0 {
		at = t.Now.Add(left)
		c.evictions[p.UID] = at
	}
	if at.After(t.Now) {
		t.Later(p.Key, at)
		return false
	}
	patchStatus(t, lifecycleController, p, map[string]any{"conditions": []corev1.PodCondition{
		disrupted(t, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
	}})
	t.Delete(lifecycleController, p.Key, p, metav1.DeleteOptions{})
	t.Tell(cluster.Note{
		User: lifecycleController, As: evictor, About: p.Key, Reason: "TaintManagerEviction", Message: "Marking for deletion Pod " + p.Key.Name,
	})
	return true
}

// spare cancels the eviction of a Pod.
func (c *Controllers) spare(t *cluster.Turn, p *cluster.Object) {
	if _, begun := c.evictions[p.UID]; !begun {
		return
	}
	delete(c.evictions, p.UID)
	t.Note(cluster.Note{
		User: lifecycleController, As: evictor, About: p.Key, Reason: "TaintManagerEviction", Message: "Cancelling deletion of Pod " + p.Key.Name,
	}, t.Now)
}

// patience is how long tolerations tolerate taints: the shortest time of the first
// toleration of each taint. bounded is false if that is for ever.
func patience(tolerations []corev1.Toleration, taints []corev1.Taint) (left time.Duration, bounded bool) {
	for i := range taints {
		toleration := scheduler.Toleration(tolerations, &taints[i])
		if toleration == nil {
			return 0, true
		}
		if toleration.TolerationSeconds == nil {
			continue
		}
		if d := time.Duration(max(0, *toleration.TolerationSeconds)) * time.Second; !bounded || d < left {
			left, bounded = d, true
		}
	}
	return left, bounded
}

// disrupted is the condition DisruptionTarget of a Pod that a controller deletes.
func disrupted(t *cluster.Turn, pod *corev1.Pod, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastTransitionTime: t.Stamp(), ObservedGeneration: pod.Generation,
	}
}

// patchStatus merges a document into the status of a Pod. The roles of these controllers
// allow that and deletion alone.
func patchStatus(t *cluster.Turn, user string, p *cluster.Object, status map[string]any) {
	t.Patch(user, p.Key, p.Key, map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	last := &t.Requests[len(t.Requests)-1]
	last.Path += "/status"
	last.ContentType = string(types.StrategicMergePatchType)
}
