// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package revisioned

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
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
	// template is the spec of its Pods, with all that they tolerate.
	template corev1.PodSpec
	// places are the nodes, by name, and then those that are gone but have Pods.
	places []*place
}

// place is a node, as a DaemonSet sees it.
type place struct {
	node string
	// wanted reports that a Pod should be there, allowed that one may stay.
	wanted, allowed bool
	// gone reports that there is no such node.
	gone bool
	// pods there, the oldest first: all, and those that neither have ended nor are being deleted.
	pods, running []*cluster.Object
}

// DaemonSet requests the next changes of the Pods and the status of a DaemonSet.
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
	s := &daemons{turn: t, key: key, self: self, d: d, hash: h.latest.Labels[appsv1.DefaultDaemonSetUniqueLabelKey], template: *d.Spec.Template.Spec.DeepCopy()}
	tolerateAll(&s.template)
	s.survey(claimed)
	if !self.Deleting {
		before := len(t.Requests)
		for _, p := range s.places {
			s.manage(p)
		}
		if len(t.Requests) == before && d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			s.roll()
		}
		t.truncate(daemonSetController, self, h, d.Spec.RevisionHistoryLimit, func(r *appsv1.ControllerRevision) bool {
			return slices.ContainsFunc(claimed, func(p *cluster.Object) bool {
				return p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
			})
		})
	}
	status := s.status()
	if !equality.Semantic.DeepEqual(status, d.Status) {
		d.Status = status
		t.Update(daemonSetController, key, "status", d)
	}
}

// survey finds out what each node should have and has.
func (s *daemons) survey(claimed []*cluster.Object) {
	at, selection := map[string]*place{}, scheduler.SelectNodes(&s.template)
	for _, node := range s.Index.Nodes() {
		p := &place{node: node.Key.Name}
		if named := s.template.NodeName; selection.Matches(p.node, node.Labels) && (named == "" || named == p.node) {
			p.allowed = !node.Repels(s.template.Tolerations, corev1.TaintEffectNoExecute)
			p.wanted = p.allowed && !node.Repels(s.template.Tolerations, corev1.TaintEffectNoSchedule)
		}
		at[p.node], s.places = p, append(s.places, p)
	}
	slices.SortStableFunc(claimed, func(a, b *cluster.Object) int {
		if (a.Node == "") != (b.Node == "") {
			return cmp.Compare(b.Node, a.Node) // Pods that have a node come first
		}
		return cmp.Compare(a.Created, b.Created)
	})
	for _, pod := range claimed {
		if pod.Ended() && pod.Deleting || pod.Target == "" {
			continue // it is deleted by its node or the garbage collector
		}
		p := at[pod.Target]
		if p == nil {
			p = &place{node: pod.Target, gone: true}
			at[p.node], s.places = p, append(s.places, p)
		}
		if p.pods = append(p.pods, pod); pod.Active() {
			p.running = append(p.running, pod)
		}
	}
}

// isNew reports whether a Pod is of the newest template.
func (s *daemons) isNew(p *cluster.Object) bool {
	return p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == s.hash
}

func (s *daemons) available(p *cluster.Object) bool {
	return s.Available(s.key, p, s.d.Spec.MinReadySeconds)
}

// limits returns how many nodes may have two Pods, and how many none, while Pods are
// replaced.
func (s *daemons) limits() (surge, unavailable int) {
	u, desired := s.d.Spec.UpdateStrategy.RollingUpdate, 0
	for _, p := range s.places {
		if p.wanted {
			desired++
		}
	}
	scaled := func(n *intstr.IntOrString) int {
		if n == nil {
			return 0
		}
		out, _ := intstr.GetScaledValueFromIntOrPercent(n, desired, true) // was validated
		return out
	}
	if u != nil {
		surge, unavailable = scaled(u.MaxSurge), scaled(u.MaxUnavailable)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (s *daemons) surges() bool {
	u := s.d.Spec.UpdateStrategy
	if u.Type != appsv1.RollingUpdateDaemonSetStrategyType || u.RollingUpdate == nil || u.RollingUpdate.MaxSurge == nil {
		return false
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(u.RollingUpdate.MaxSurge, 1, true) // was validated
	return n > 0
}

func (s *daemons) remove(list ...*cluster.Object) {
	for _, p := range list {
		s.Delete(daemonSetController, s.key, p, metav1.DeleteOptions{})
		s.TellDeletion(daemonSetController, s.self, p)
	}
}

// manage creates the Pod that a node lacks, and deletes the surplus.
func (s *daemons) manage(p *place) {
	switch {
	case p.gone:
		for _, pod := range p.running {
			if pod.Node == "" { // no kubelet will delete it
				s.remove(pod)
			}
		}
		return
	case p.wanted && len(p.pods) == 0:
		s.create(p.node)
		return
	case !p.allowed:
		s.remove(slices.DeleteFunc(slices.Clone(p.pods), func(pod *cluster.Object) bool { return pod.Deleting })...)
		return
	}
	for _, pod := range p.pods {
		if pod.Ended() {
			s.replace(pod)
		}
	}
	switch {
	case !s.surges():
		s.remove(p.running[min(1, len(p.running)):]...)
	case len(p.running) == 0 && p.wanted:
		s.create(p.node)
	case len(p.running) > 1:
		s.prune(p)
	}
}

// prune leaves the oldest Pod of the newest template and the oldest of another, which goes
// once it is not ready or the new one is available.
func (s *daemons) prune(p *place) {
	var fresh, old *cluster.Object
	for _, pod := range p.running {
		switch isNew := s.isNew(pod); {
		case isNew && fresh == nil:
			fresh = pod
		case !isNew && old == nil:
			old = pod
		default:
			s.remove(pod)
		}
	}
	if fresh != nil && old != nil && (!old.Ready || s.available(fresh)) {
		s.remove(old)
	}
}

// roll replaces Pods of other templates, as many at once as the strategy allows.
func (s *daemons) roll() {
	surge, unavailable := s.limits()
	var now, next, misplaced []*place // whose Pod is replaced at once, when it can be, when another is there
	busy, available, desired := 0, 0, 0
	for _, p := range s.places {
		if p.wanted {
			desired++
		}
		if !p.wanted && len(p.pods) == 0 {
			continue
		}
		var fresh, old []*cluster.Object
		for _, pod := range p.pods {
			switch {
			case pod.Deleting:
			case s.isNew(pod):
				fresh = append(fresh, pod)
			default:
				old = append(old, pod)
			}
		}
		if len(fresh) > 1 || len(old) > 1 {
			busy++ // the next look finds fewer
			continue
		}
		if first := append(old, fresh...); len(first) > 0 && s.available(first[0]) {
			available++
		}
		switch {
		case surge == 0 && (len(fresh) == len(old) || len(fresh) == 1 && !s.available(fresh[0])):
			busy++
		case len(old) == 0:
		case surge > 0 && len(fresh) == 1: // it is not available yet
			busy++
		case !s.available(old[0]):
			if now = append(now, p); surge == 0 {
				busy++
			}
		case surge > 0 && !p.wanted:
			misplaced = append(misplaced, p)
		default:
			next = append(next, p)
		}
	}
	limit := unavailable
	if surge > 0 {
		limit = surge
	}
	now = append(now, next[:max(0, min(limit-busy, len(next)))]...)
	for _, p := range now {
		if surge > 0 && p.wanted {
			s.create(p.node)
		} else {
			s.remove(p.running...)
		}
	}
	for _, p := range misplaced[:max(0, min(available-desired, len(misplaced)))] {
		s.remove(p.running...)
	}
}

func (s *daemons) create(node string) {
	s.Create(daemonSetController, s.key, cluster.Pods, s.pod(node))
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

// tolerateAll adds what Pods of DaemonSets tolerate.
func tolerateAll(spec *corev1.PodSpec) {
	tolerate := func(key string, effect corev1.TaintEffect) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	tolerate(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	tolerate(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	tolerate(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	tolerate(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	tolerate(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	tolerate(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		tolerate(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
}

// pod makes the Pod of a node.
func (s *daemons) pod(node string) *corev1.Pod {
	p := cluster.PodOf(&s.d.Spec.Template, s.d.Name+"-", cluster.Reference(cluster.KindOf("DaemonSet"), s.d.Name, s.d.UID))
	p.Labels = cluster.With(p.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, s.hash)
	if n := s.d.Annotations[appsv1.DeprecatedTemplateGeneration]; n != "" {
		p.Labels["pod-template-generation"] = n
	}
	tolerateAll(&p.Spec)
	terms := []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
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

// status reports the first Pod of every node.
func (s *daemons) status() appsv1.DaemonSetStatus {
	out := appsv1.DaemonSetStatus{
		ObservedGeneration: s.d.Generation, CollisionCount: s.d.Status.CollisionCount, Conditions: s.d.Status.Conditions,
	}
	for _, p := range s.places {
		switch {
		case p.gone:
			continue
		case !p.wanted:
			if len(p.pods) > 0 {
				out.NumberMisscheduled++
			}
			continue
		}
		out.DesiredNumberScheduled++
		if len(p.pods) == 0 {
			continue
		}
		out.CurrentNumberScheduled++
		first := p.pods[0]
		if first.Ready {
			out.NumberReady++
		}
		if s.available(first) {
			out.NumberAvailable++
		}
		if s.isNew(first) {
			out.UpdatedNumberScheduled++
		}
	}
	out.NumberUnavailable = out.DesiredNumberScheduled - out.NumberAvailable
	return out
}
