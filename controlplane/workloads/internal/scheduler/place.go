// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// World is the cluster that Pods are placed in.
type World interface {
	// Nodes returns all nodes, by name.
	Nodes() []*Node
	// Used returns what the Pods of a node take of it.
	Used(node string) Usage
	// Bound yields the Pods that have a node and have not ended: those of a namespace, or all
	// for the empty one.
	Bound(namespace string) iter.Seq[Bound]
	// Repelling yields those of them that keep others away.
	Repelling() iter.Seq[Bound]
	// NamespaceLabels returns the labels of a namespace, nil if there is none of that name.
	NamespaceLabels(name string) labels.Set
}

// Bound is a Pod that has a node.
type Bound struct {
	Namespace string
	Labels    map[string]string
	// Deleting Pods have been deleted, and end.
	Deleting bool
	Node     string
	Demand   *Demand
}

// Pod is a Pod that looks for a node.
type Pod struct {
	Namespace string
	Labels    map[string]string
	Demand    *Demand
	Volumes   Volumes
	// Refused is why no node takes the Pod, regardless of its requests. Empty: some may.
	Refused string
}

// Volumes are those that a Pod mounts by claims.
type Volumes struct {
	// Unbound is why the Pod cannot be scheduled before something becomes of its claims.
	// Empty: it can.
	Unbound string
	// Nodes are those on which each volume can be used.
	Nodes []*NodeSelection
	// InUse reports that another Pod uses one that only one Pod may use.
	InUse bool
}

// Place returns the node for a Pod, or kube-scheduler's message that it cannot be
// scheduled.
func Place(w World, p *Pod) (node, failure string) {
	nodes := w.Nodes()
	if len(nodes) == 0 {
		return "", "no nodes available to schedule pods"
	}
	switch d := p.Demand; {
	case d.Nodes.named && len(d.Nodes.names) == 0:
		return "", unplaced(len(nodes), "pod affinity terms conflict")
	case p.Volumes.Unbound != "":
		return "", unplaced(len(nodes), p.Volumes.Unbound)
	}
	f := newFilter(w, p, nodes)
	verdicts := make([]verdict, 0, len(nodes))
	var best *candidate
	for _, n := range nodes {
		v := f.node(n)
		if len(v.reasons) > 0 {
			verdicts = append(verdicts, v)
			continue
		}
		if c := f.rate(n); best == nil || c.before(best) {
			best = c
		}
	}
	if best == nil {
		return "", f.failure(verdicts)
	}
	return best.node.Name, ""
}

// candidate is a node that takes a Pod.
type candidate struct {
	node *Node
	// unwelcome counts its PreferNoSchedule taints that the Pod does not tolerate, weight is the sum of the
	// preferences that it meets.
	unwelcome int
	weight    int64
	// share is how much of its CPU and memory is requested, from 0 to 1.
	share float64
	pods  int64
}

func (c *candidate) before(other *candidate) bool {
	return cmp.Or(
		cmp.Compare(c.unwelcome, other.unwelcome), cmp.Compare(other.weight, c.weight),
		cmp.Compare(c.share, other.share), cmp.Compare(c.pods, other.pods), cmp.Compare(c.node.Name, other.node.Name),
	) < 0
}

func (f *filter) rate(n *Node) *candidate {
	used := f.world.Used(n.Name)
	c := &candidate{node: n, unwelcome: n.untolerated(f.pod.Demand.Tolerations, corev1.TaintEffectPreferNoSchedule), pods: used.Pods}
	for _, p := range f.pod.Demand.preferred {
		if anyTerm(p.terms, n.Name, n.Labels) {
			c.weight += int64(p.weight)
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if all := n.Allocatable[name]; all > 0 {
			c.share += float64(used.Requests[name]+f.pod.Demand.Requests[name]) / float64(all) / 2
		}
	}
	return c
}

// spread is one topology spread constraint of a Pod, as the cluster is.
type spread struct {
	key string
	max int
	// counts are the Pods of each domain, least those of the domain with the fewest, self 1 if
	// the Pod itself counts.
	counts      map[string]int
	least, self int
}

// spreadsOf counts the Pods that the constraints of a Pod are about.
func spreadsOf(w World, p *Pod, nodes []*Node) []spread {
	d := p.Demand
	if len(d.spread) == 0 {
		return nil
	}
	hasAll := func(n *Node) bool {
		return !slices.ContainsFunc(d.spread, func(c corev1.TopologySpreadConstraint) bool {
			_, has := n.Labels[c.TopologyKey]
			return !has
		})
	}
	out := make([]spread, 0, len(d.spread))
	for i := range d.spread {
		c := &d.spread[i]
		selector := spreadSelector(c, p.Labels)
		s := spread{key: c.TopologyKey, max: int(c.MaxSkew), counts: map[string]int{}}
		domain := map[string]string{} // by node
		for _, n := range nodes {
			if hasAll(n) && includes(c, n, d) {
				domain[n.Name] = n.Labels[c.TopologyKey]
				s.counts[n.Labels[c.TopologyKey]] += 0
			}
		}
		if !selector.Empty() {
			for other := range w.Bound(p.Namespace) {
				if value, counted := domain[other.Node]; counted && !other.Deleting && selector.Matches(labels.Set(other.Labels)) {
					s.counts[value]++
				}
			}
		}
		if selector.Matches(labels.Set(p.Labels)) {
			s.self = 1
		}
		if c.MinDomains == nil || len(s.counts) >= int(*c.MinDomains) {
			first := true
			for _, n := range s.counts {
				if first || n < s.least {
					s.least, first = n, false
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// includes reports whether the Pods of a node count for a constraint.
func includes(c *corev1.TopologySpreadConstraint, n *Node, d *Demand) bool {
	if (c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor) && !d.Nodes.Matches(n.Name, n.Labels) {
		return false
	}
	return c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore ||
		n.untolerated(d.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) == 0
}
