// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
)

// The conditions of a node are set to Unknown when it has not reported for silence, or not
// at all since it was created startup ago.
const (
	silence = 50 * time.Second
	startup = time.Minute
)

// beat is the last report of a node, and when it was observed.
type beat struct {
	health           corev1.ConditionStatus
	reported, leased time.Time
	at               time.Time
}

// silent marks the conditions of a node that is not simulated as Unknown, once neither its
// Lease was renewed nor its condition Ready reported for long enough, and reports whether it does
// so now. Simulated nodes are as their status says: their kubelets are never silent.
func (c *Controllers) silent(t *cluster.Turn, node *cluster.Object) bool {
	if node.Simulated {
		return false
	}
	now := beat{health: node.Health, reported: node.Heartbeat}
	if lease := cluster.Stored[coordinationv1.Lease](t, cluster.LeaseOf(node.Key.Name)); lease != nil && lease.Spec.RenewTime != nil {
		now.leased = lease.Spec.RenewTime.Time
	}
	last, known := c.beats[node.UID]
	patience := silence
	switch {
	case !known && node.Health == "":
		now.at = node.CreatedAt
	case !known, (now.health == "") != (last.health == ""), !now.reported.Equal(last.reported):
		now.at = t.Now
	case now.leased.After(last.leased):
		// The node is looked at only when the time may be over: the Lease has the exact time.
		now.at = t.Now
		if now.leased.After(last.at) && now.leased.Before(t.Now) {
			now.at = now.leased
		}
	default:
		now.at = last.at
	}
	if node.Health == "" {
		patience = startup
	}
	c.beats[node.UID] = now
	if over := now.at.Add(patience); !t.Now.After(over) {
		t.Later(node.Key, over.Add(time.Nanosecond))
		return false
	}
	return giveUpHearing(t, node)
}

// giveUpHearing sets the conditions of a node to Unknown, unless they are.
func giveUpHearing(t *cluster.Turn, node *cluster.Object) bool {
	if node.Health == corev1.ConditionUnknown {
		return false
	}
	stored := cluster.Stored[corev1.Node](t, node.Key)
	if stored == nil {
		return false
	}
	now := t.Stamp()
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		had := conditionOf(stored, kind)
		switch {
		case had == nil:
			stored.Status.Conditions = append(stored.Status.Conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: metav1.NewTime(node.CreatedAt), LastTransitionTime: now,
			})
		case had.Status != corev1.ConditionUnknown:
			had.Status, had.Reason, had.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			had.LastTransitionTime = now
		}
	}
	t.Update(lifecycleController, node.Key, "status", stored)
	return true
}

func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}
