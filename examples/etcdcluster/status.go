// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
)

// report puts a view and the next step into the status.
func report(c *v1.EtcdCluster, v view, next step) {
	var troubles []string
	if v.members != nil {
		c.Status.Members, c.Status.Size = nil, 0
		for _, m := range v.members {
			state := v1.Voter
			_, answers := v.answers[m.Name]
			switch {
			case m.Learner:
				state = v1.Learner
			case !answers:
				state = v1.Silent
				troubles = append(troubles, m.Name+" does not answer")
			}
			if !m.Learner {
				c.Status.Size++
			}
			c.Status.Members = append(c.Status.Members, v1.Member{Name: m.Name, ID: strconv.FormatUint(m.ID, 16), State: state})
		}
		speaker, _ := v.speaker()
		c.Status.ClusterID = strconv.FormatUint(v.answers[speaker].ClusterID, 16)
	}
	set := func(condition string, holds bool, reason, message string) {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		controller.SetCondition(c, &c.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
	}
	count := fmt.Sprintf("%d members answer", len(v.answers))
	if v.members != nil {
		set(v1.Available, true, "HasQuorum", count)
	} else {
		set(v1.Available, false, "NoQuorum", count)
	}
	switch next.action {
	case nothing, stuck:
		set(v1.Progressing, false, string(next.action), next.reason)
	default:
		set(v1.Progressing, true, string(next.action), next.member+": "+next.reason)
	}
	// A loss is made good when the cluster has its size again, not before.
	was := meta.IsStatusConditionTrue(c.Status.Conditions, v1.Degraded)
	switch {
	case next.action == stuck:
		set(v1.Degraded, true, "QuorumLost", next.reason)
	case next.lost:
		set(v1.Degraded, true, "MemberLost", next.member+" is replaced: "+next.reason)
	case len(troubles) > 0:
		set(v1.Degraded, true, "MemberSilent", strings.Join(troubles, ", "))
	case was && (v.members == nil || c.Status.Size < c.Spec.Size):
		set(v1.Degraded, true, "MemberLost", fmt.Sprintf("%d of %d members vote", c.Status.Size, c.Spec.Size))
	default:
		set(v1.Degraded, false, "AllAnswer", count)
	}
}

// tell counts a step and tells users of it.
func (r *Reconciler) tell(ctx context.Context, c *v1.EtcdCluster, done step) {
	note := controller.UserEvent{
		Action: string(done.action), Note: done.member + ": " + done.reason,
		Related: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: done.member}},
	}
	switch done.action {
	case found, start:
		note.Reason = "MemberStarted"
	case add:
		note.Reason = "MemberAdded"
	case promote:
		note.Reason = "MemberPromoted"
	case remove:
		note.Reason = "MemberRemoved"
		if done.lost {
			note.Reason, note.Warning = "MemberLost", true
			r.replaced.WithLabelValues(c.Namespace, c.Name).Inc()
		}
	case stop:
		note.Reason = "MemberStopped"
	}
	controller.Emit(ctx, note)
}
