// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Node is what the scheduler knows of a node. It is not changed.
type Node struct {
	Name          string
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
	// Allocatable is what Pods may request together, Pods how many there may be.
	Allocatable Resources
	Pods        int64
}

// Usage is what the Pods of a node use of it.
type Usage struct {
	Requests Resources
	Ports    map[HostPort]int
	Pods     int64
}

// Add adds a Pod, or takes it away with times -1.
func (u *Usage) Add(d *Demand, times int) {
	u.Pods += int64(times)
	for name, amount := range d.Requests {
		if u.Requests == nil {
			u.Requests = Resources{}
		}
		if u.Requests[name] += int64(times) * amount; u.Requests[name] == 0 {
			delete(u.Requests, name)
		}
	}
	for _, port := range d.Ports {
		if u.Ports == nil {
			u.Ports = map[HostPort]int{}
		}
		if u.Ports[port] += times; u.Ports[port] == 0 {
			delete(u.Ports, port)
		}
	}
}

// NodeSelection is which nodes a Pod may go to by their names and labels.
type NodeSelection struct {
	labels labels.Selector
	// required are alternatives; restricted reports that there are some, though nothing may be one.
	required   []nodeTerm
	restricted bool
	// names are the only nodes that can be meant, if named.
	names []string
	named bool
}

// nodeTerm is what a node must have; a term that asks for nothing, or for what cannot be, is met by none.
type nodeTerm struct {
	labels, fields []labels.Requirement
	never          bool
}

// SelectNodes returns which nodes a Pod may go to.
func SelectNodes(spec *corev1.PodSpec) *NodeSelection {
	return newNodeSelection(spec.NodeSelector, spec.Affinity)
}

// SelectNodesOfVolume returns on which nodes a volume can be used.
func SelectNodesOfVolume(affinity *corev1.VolumeNodeAffinity) *NodeSelection {
	s := &NodeSelection{labels: labels.Everything()}
	if affinity != nil && affinity.Required != nil {
		s.require(affinity.Required.NodeSelectorTerms)
	}
	return s
}

func newNodeSelection(selector map[string]string, affinity *corev1.Affinity) *NodeSelection {
	s := &NodeSelection{labels: labels.SelectorFromSet(selector)}
	if affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		s.require(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	}
	return s
}

func (s *NodeSelection) require(terms []corev1.NodeSelectorTerm) {
	s.required, s.restricted = nodeTermsOf(terms), true
	s.named = len(terms) > 0
	for i := range terms {
		names, named := namesOf(&terms[i])
		s.named = s.named && named
		s.names = append(s.names, names...)
	}
	if !s.named {
		s.names = nil
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
}

// namesOf returns the nodes that a term names, if it does.
func namesOf(t *corev1.NodeSelectorTerm) (names []string, named bool) {
	for _, r := range t.MatchFields {
		if r.Key != metav1.ObjectNameField || r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		if !named {
			names, named = slices.Clone(r.Values), true
			continue
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(r.Values, name) })
	}
	return names, named
}

// Matches reports whether a node is one of the selection.
func (s *NodeSelection) Matches(name string, has map[string]string) bool {
	return s.labels.Matches(labels.Set(has)) && (!s.restricted || anyTerm(s.required, name, has))
}

func anyTerm(terms []nodeTerm, name string, has map[string]string) bool {
	return slices.ContainsFunc(terms, func(t nodeTerm) bool {
		all := func(list []labels.Requirement, of labels.Set) bool {
			return !slices.ContainsFunc(list, func(r labels.Requirement) bool { return !r.Matches(of) })
		}
		return !t.never && all(t.labels, has) && all(t.fields, labels.Set{metav1.ObjectNameField: name})
	})
}

func nodeTermsOf(terms []corev1.NodeSelectorTerm) (out []nodeTerm) {
	for i := range terms {
		t := nodeTerm{never: len(terms[i].MatchExpressions)+len(terms[i].MatchFields) == 0}
		parse := func(list []corev1.NodeSelectorRequirement) (out []labels.Requirement) {
			for _, r := range list {
				requirement, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
				if err != nil {
					t.never = true
					continue
				}
				out = append(out, *requirement)
			}
			return out
		}
		t.labels, t.fields = parse(terms[i].MatchExpressions), parse(terms[i].MatchFields)
		out = append(out, t)
	}
	return out
}

func operator(o corev1.NodeSelectorOperator) selection.Operator {
	switch o {
	case corev1.NodeSelectorOpIn:
		return selection.In
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn
	case corev1.NodeSelectorOpExists:
		return selection.Exists
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan
	case corev1.NodeSelectorOpLt:
		return selection.LessThan
	}
	return selection.Operator(o)
}

// Tolerates reports whether one of the tolerations is for a taint.
func Tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return Toleration(tolerations, taint) != nil
}

// Toleration returns the first toleration that is for a taint, nil if none is.
func Toleration(tolerations []corev1.Toleration, taint *corev1.Taint) *corev1.Toleration {
	i := slices.IndexFunc(tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return true
		}
		return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Key != "" && t.Value == taint.Value
	})
	if i < 0 {
		return nil
	}
	return &tolerations[i]
}

// untolerated counts the taints of some effects that are not tolerated.
func (n *Node) untolerated(tolerations []corev1.Toleration, effects ...corev1.TaintEffect) (count int) {
	for i := range n.Taints {
		if slices.Contains(effects, n.Taints[i].Effect) && !Tolerates(tolerations, &n.Taints[i]) {
			count++
		}
	}
	return count
}
