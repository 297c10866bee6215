// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package revisioned

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const daemonSetController = step.KubeSystem + "daemon-set-controller"

// daemons is one look at a DaemonSet.
type daemons struct {
	*turn
	key  storage.Key
	self *cluster.Object
	d    *appsv1.DaemonSet
	hash string
	// old and current are the Pods of the node that run, by their template; the
	// oldest first.
	old, current []*cluster.Object
	// wanted tells that the node should have a Pod.
	wanted bool
}

// DaemonSet takes a DaemonSet one step on. As there is one node, it has at
// most one Pod, or two while one replaces the other.
func DaemonSet(common *cluster.Turn, key storage.Key) {
	t := &turn{common}
	self, d := t.Index.Objects[key], cluster.Stored[appsv1.DaemonSet](t.Turn, key)
	if self == nil || d == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	claimed := t.Claim(daemonSetController, self, cluster.KindOf("DaemonSet"), cluster.Pods, selector)
	h := t.historyOf(daemonSetController, self, d, "DaemonSet", &d.Spec.Template, d.Status.CollisionCount,
		func() string { return cluster.HashOf(&d.Spec.Template, d.Status.CollisionCount) })
	s := &daemons{turn: t, key: key, self: self, d: d, hash: h.latest.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]}
	if node := t.Index.Objects[cluster.NodeKey()]; node != nil {
		s.wanted = labels.SelectorFromSet(d.Spec.Template.Spec.NodeSelector).Matches(labels.Set(node.Labels))
	}
	slices.SortStableFunc(claimed, func(a, b *cluster.Object) int { return int(a.Created - b.Created) })
	busy := false // somebody is still there
	for _, p := range claimed {
		switch {
		case p.Deleting:
			busy = true
		case p.Ended():
			busy = true
			if !self.Deleting {
				s.replace(p)
			}
		case p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == s.hash:
			s.current = append(s.current, p)
		default:
			s.old = append(s.old, p)
		}
	}
	if !self.Deleting {
		s.act(busy)
		t.truncate(daemonSetController, self, h, d.Spec.RevisionHistoryLimit, func(r *appsv1.ControllerRevision) bool {
			return slices.ContainsFunc(claimed, func(p *cluster.Object) bool {
				return p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
			})
		})
	}
	status := s.status(claimed)
	if !equality.Semantic.DeepEqual(status, d.Status) {
		d.Status = status
		t.Update(daemonSetController, key, "status", d)
	}
}

// surges tells whether the new Pod comes before the old one goes.
func (s *daemons) surges() bool {
	u := s.d.Spec.UpdateStrategy
	if u.Type != appsv1.RollingUpdateDaemonSetStrategyType || u.RollingUpdate == nil || u.RollingUpdate.MaxSurge == nil {
		return false
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(u.RollingUpdate.MaxSurge, 1, true) // was validated
	return n > 0
}

func (s *daemons) act(busy bool) {
	gone := func(list []*cluster.Object) {
		for _, p := range list {
			s.Delete(daemonSetController, s.key, p, metav1.DeleteOptions{})
			s.TellDeletion(daemonSetController, s.self, p)
		}
	}
	rolling := s.d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
	switch {
	case !s.wanted:
		gone(s.old)
		gone(s.current)
	case len(s.old)+len(s.current) == 0:
		if !busy {
			s.create()
		}
	case len(s.current) > 1:
		gone(s.current[1:])
	case len(s.old) > 1:
		gone(s.old[1:])
	case len(s.old) == 0 || !rolling:
	case len(s.current) == 0 && s.surges():
		s.create()
	case !s.surges() || !s.old[0].Ready || s.Available(s.key, s.current[0], s.d.Spec.MinReadySeconds):
		gone(s.old)
	}
}

func (s *daemons) create() {
	s.Create(daemonSetController, s.key, cluster.Pods, s.pod())
	s.TellFailure(daemonSetController, s.self)
}

// replace deletes a Pod that has ended.
func (s *daemons) replace(p *cluster.Object) {
	s.Delete(daemonSetController, s.key, p, metav1.DeleteOptions{})
	note := cluster.Note{
		User: daemonSetController, About: s.key, UID: s.self.UID, Warning: true, Reason: "FailedDaemonPod",
		Message: fmt.Sprintf("Found failed daemon pod %s on node %s, will try to kill it", p.Key.Name, p.Node),
	}
	if p.Phase == corev1.PodSucceeded {
		note.Warning, note.Reason = false, "SucceededDaemonPod"
		note.Message = fmt.Sprintf("Found succeeded daemon pod %s on node %s, will try to delete it", p.Key.Name, p.Node)
	}
	s.Tell(note)
	s.TellDeletion(daemonSetController, s.self, p)
}

// pod makes the Pod of the node.
func (s *daemons) pod() *corev1.Pod {
	p := cluster.PodOf(&s.d.Spec.Template, s.d.Name+"-", cluster.Reference(cluster.KindOf("DaemonSet"), s.d.Name, s.d.UID))
	p.Labels = cluster.With(p.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, s.hash)
	if n := s.d.Annotations[appsv1.DeprecatedTemplateGeneration]; n != "" {
		p.Labels["pod-template-generation"] = n
	}
	tolerate := func(key string, effect corev1.TaintEffect) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	tolerate(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	tolerate(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	tolerate(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	tolerate(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	tolerate(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	tolerate(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if p.Spec.HostNetwork {
		tolerate(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	terms := []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{cluster.NodeName},
	}}}}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	return p
}

// status reports the oldest Pod of the node.
func (s *daemons) status(claimed []*cluster.Object) appsv1.DaemonSetStatus {
	out := appsv1.DaemonSetStatus{
		ObservedGeneration: s.d.Generation, CollisionCount: s.d.Status.CollisionCount, Conditions: s.d.Status.Conditions,
	}
	if !s.wanted {
		if len(claimed) > 0 {
			out.NumberMisscheduled = 1
		}
		return out
	}
	out.DesiredNumberScheduled, out.NumberUnavailable = 1, 1
	if len(claimed) == 0 {
		return out
	}
	out.CurrentNumberScheduled = 1
	p := claimed[0]
	if p.Ready {
		out.NumberReady = 1
	}
	if s.Available(s.key, p, s.d.Spec.MinReadySeconds) {
		out.NumberAvailable, out.NumberUnavailable = 1, 0
	}
	if p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == s.hash {
		out.UpdatedNumberScheduled = 1
	}
	return out
}
