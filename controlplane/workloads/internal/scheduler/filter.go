// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// verdict is why a node does not take a Pod: no reasons, or those of the first filter that has
// some. It is final where no other Pod could make room.
type verdict struct {
	reasons []string
	final   bool
}

func never(reason string) verdict      { return verdict{reasons: []string{reason}, final: true} }
func notNow(reasons ...string) verdict { return verdict{reasons: reasons} }

// pair is a domain: the value of a label of nodes.
type pair struct{ key, value string }

// filter decides which nodes take one Pod.
type filter struct {
	world World
	pod   *Pod
	all   int
	// spreads are the constraints of the Pod, near counts the Pods that it wants to be with
	// by domain; far and repelled are domains from which it keeps away, or is kept away.
	spreads       []spread
	near          map[pair]int
	far, repelled map[pair]bool
	// first is set if no Pod matches its affinity but it does itself.
	first bool
}

func newFilter(w World, p *Pod, nodes []*Node) *filter {
	f := &filter{world: w, pod: p, all: len(nodes), spreads: spreadsOf(w, p, nodes), near: map[pair]int{}, far: map[pair]bool{}, repelled: map[pair]bool{}}
	labelsOf := make(map[string]map[string]string, len(nodes))
	if d := p.Demand; d.Relates() || !isEmpty(w.Repelling()) {
		for _, n := range nodes {
			labelsOf[n.Name] = n.Labels
		}
	}
	f.relate(labelsOf)
	self := Bound{Namespace: p.Namespace, Labels: p.Labels}
	for other := range w.Repelling() {
		for i := range other.Demand.antiAffinity {
			t := &other.Demand.antiAffinity[i]
			value, has := labelsOf[other.Node][t.key]
			if has && t.covers(w, other.Namespace, &self) {
				f.repelled[pair{t.key, value}] = true
			}
		}
	}
	return f
}

func isEmpty(pods func(func(Bound) bool)) bool {
	for range pods {
		return false
	}
	return true
}

// relate finds the domains of the Pods that the affinity and anti-affinity of the Pod are about.
func (f *filter) relate(labelsOf map[string]map[string]string) {
	d := f.pod.Demand
	if len(d.affinity)+len(d.antiAffinity) == 0 {
		return
	}
	namespace := f.pod.Namespace
	if slices.ContainsFunc(slices.Concat(d.affinity, d.antiAffinity), func(t term) bool { return !t.own }) {
		namespace = "" // others as well
	}
	covered := func(other *Bound) bool {
		return len(d.affinity) > 0 && !slices.ContainsFunc(d.affinity, func(t term) bool { return !t.covers(f.world, f.pod.Namespace, other) })
	}
	for other := range f.world.Bound(namespace) {
		if covered(&other) {
			for i := range d.affinity {
				if value, has := labelsOf[other.Node][d.affinity[i].key]; has {
					f.near[pair{d.affinity[i].key, value}]++
				}
			}
		}
		for i := range d.antiAffinity {
			t := &d.antiAffinity[i]
			if value, has := labelsOf[other.Node][t.key]; has && t.covers(f.world, f.pod.Namespace, &other) {
				f.far[pair{t.key, value}] = true
			}
		}
	}
	f.first = len(f.near) == 0 && covered(&Bound{Namespace: f.pod.Namespace, Labels: f.pod.Labels})
}

// node returns why a node does not take the Pod. The order is that of kube-scheduler's
// filters, of which the first one that refuses is reported.
func (f *filter) node(n *Node) verdict {
	d := f.pod.Demand
	if d.Nodes.named && !slices.Contains(d.Nodes.names, n.Name) {
		return never("node(s) didn't satisfy plugin(s) [NodeAffinity]")
	}
	switch {
	case f.pod.Refused != "":
		return never(f.pod.Refused)
	case n.Unschedulable && !Tolerates(d.Tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}):
		return never("node(s) were unschedulable")
	case n.untolerated(d.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) > 0:
		return never("node(s) had untolerated taint(s)")
	case !d.Nodes.Matches(n.Name, n.Labels):
		return never("node(s) didn't match Pod's node affinity/selector")
	}
	used := f.world.Used(n.Name)
	for taken := range used.Ports {
		if slices.ContainsFunc(d.Ports, taken.conflicts) {
			return notNow("node(s) didn't have free ports for the requested pod ports")
		}
	}
	if v := f.room(n, &used); len(v.reasons) > 0 {
		return v
	}
	if f.pod.Volumes.InUse {
		return notNow("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")
	}
	for _, volume := range f.pod.Volumes.Nodes {
		if !volume.Matches(n.Name, n.Labels) {
			return never("node(s) didn't match PersistentVolume's node affinity")
		}
	}
	if v := f.spread(n); len(v.reasons) > 0 {
		return v
	}
	return f.company(n)
}

// room checks what the Pod requests against what the node has left.
func (f *filter) room(n *Node, used *Usage) (v verdict) {
	if used.Pods+1 > n.Pods {
		v.reasons = append(v.reasons, "Too many pods")
	}
	for _, name := range slices.Sorted(maps.Keys(f.pod.Demand.Requests)) {
		asked := f.pod.Demand.Requests[name]
		if asked > n.Allocatable[name]-used.Requests[name] {
			v.reasons = append(v.reasons, "Insufficient "+string(name))
			v.final = v.final || asked > n.Allocatable[name]
		}
	}
	return v
}

func (f *filter) spread(n *Node) verdict {
	const reason = "node(s) didn't match pod topology spread constraints"
	for i := range f.spreads {
		s := &f.spreads[i]
		value, has := n.Labels[s.key]
		if !has {
			return never(reason + " (missing required label)")
		}
		if s.counts[value]+s.self-s.least > s.max {
			return notNow(reason)
		}
	}
	return verdict{}
}

// company checks the topology spread, affinity and anti-affinity between the Pod and the Pods around a node.
func (f *filter) company(n *Node) verdict {
	d, together := f.pod.Demand, true
	for i := range d.affinity {
		value, has := n.Labels[d.affinity[i].key]
		together = together && (f.near[pair{d.affinity[i].key, value}] > 0 || f.first)
		if !has {
			together = false
			break
		}
	}
	if !together {
		return never("node(s) didn't match pod affinity rules")
	}
	for i := range d.antiAffinity {
		key := d.antiAffinity[i].key
		if value, has := n.Labels[key]; has && f.far[pair{key, value}] {
			return notNow("node(s) didn't match pod anti-affinity rules")
		}
	}
	for domain := range f.repelled {
		if value, has := n.Labels[domain.key]; has && value == domain.value {
			return notNow("node(s) didn't satisfy existing pods anti-affinity rules")
		}
	}
	return verdict{}
}

// failure returns the message that no node takes the Pod.
func (f *filter) failure(verdicts []verdict) string {
	counts, final := map[string]int{}, 0
	for _, v := range verdicts {
		for _, reason := range v.reasons {
			counts[reason]++
		}
		if v.final {
			final++
		}
	}
	help := map[string]int{"Preemption is not helpful for scheduling": final, "No preemption victims found for incoming pod": f.all - final}
	preemption := "preemption: not eligible due to preemptionPolicy=Never."
	if !f.pod.Demand.neverPreempts {
		preemption = "preemption: " + available(f.all) + " " + histogram(help)
	}
	return available(f.all) + " " + histogram(counts) + " no new claims to deallocate, " + preemption
}

// unplaced returns the message for a Pod that fits no node for a reason that is not of the nodes. Its
// end is that of kube-scheduler where it does not look for a Pod to preempt.
func unplaced(all int, why string) string { return available(all) + " " + why + ". not found" }

func available(all int) string { return fmt.Sprintf("0/%d nodes are available:", all) }

// histogram lists reasons with how many nodes have each, in the order of the text.
func histogram(counts map[string]int) string {
	var lines []string
	for reason, n := range counts {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", n, reason))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ") + "."
}

// spreadSelector returns which Pods a constraint of a Pod with labels is about.
func spreadSelector(c *corev1.TopologySpreadConstraint, own map[string]string) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return labels.Nothing() // was validated
	}
	same := labels.Set{}
	for _, key := range c.MatchLabelKeys {
		if value, has := own[key]; has {
			same[key] = value
		}
	}
	requirements, selectable := selector.Requirements()
	if len(same) == 0 || !selectable {
		return selector
	}
	return labels.SelectorFromSet(same).Add(requirements...)
}
