// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// NodeOf is the key of a node.
func NodeOf(name string) storage.Key { return storage.Key{Bucket: Nodes, Name: name} }

// Node returns a node, nil if there is none of that name.
func (x *Index) Node(name string) *Object { return x.Objects[NodeOf(name)] }

// Nodes returns all nodes by name.
func (x *Index) Nodes() []*Object {
	out := make([]*Object, 0, len(x.nodes))
	for _, key := range x.nodes.Sorted() {
		out = append(out, x.Objects[key])
	}
	return out
}

// On returns the Pods of a node; those that are on none for the empty name.
func (x *Index) On(node string) []storage.Key { return x.on[node].Sorted() }

// CountOn tells how many Pods a node has.
func (x *Index) CountOn(node string) int { return len(x.on[node]) }

// CountEnded tells how many Pods have ended and are not being deleted.
func (x *Index) CountEnded() int { return len(x.ended) }

// Ended returns the Pods that have ended and are not being deleted: first those that their
// nodes evicted, then the oldest.
func (x *Index) Ended() []*Object {
	out := make([]*Object, 0, len(x.ended))
	for key := range x.ended {
		out = append(out, x.Objects[key])
	}
	slices.SortFunc(out, func(a, b *Object) int {
		if a.evicted != b.evicted {
			if a.evicted {
				return -1
			}
			return 1
		}
		return cmp.Or(a.createdAt.Compare(b.createdAt), step.CompareKeys(a.Key, b.Key))
	})
	return out
}

// illOf is the key of the taint that a condition of a node calls for; empty if it calls
// for none.
func illOf(c *corev1.NodeCondition) string {
	switch string(c.Type) + " " + string(c.Status) {
	case "Ready False":
		return corev1.TaintNodeNotReady
	case "Ready Unknown":
		return corev1.TaintNodeUnreachable
	case "MemoryPressure True":
		return corev1.TaintNodeMemoryPressure
	case "DiskPressure True":
		return corev1.TaintNodeDiskPressure
	case "PIDPressure True":
		return corev1.TaintNodePIDPressure
	case "NetworkUnavailable True":
		return corev1.TaintNodeNetworkUnavailable
	}
	return ""
}

// readNode reads what is known of a node alone.
func (o *Object) readNode(rec *storage.Record) {
	var n struct {
		Spec struct {
			Unschedulable bool           `json:"unschedulable"`
			Taints        []corev1.Taint `json:"taints"`
		} `json:"spec"`
		Status struct {
			Conditions []corev1.NodeCondition `json:"conditions"`
			Addresses  []corev1.NodeAddress   `json:"addresses"`
		} `json:"status"`
	}
	if step.Decode(rec, &n) != nil {
		return
	}
	o.Cordoned, o.Taints = n.Spec.Unschedulable, n.Spec.Taints
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if ill := illOf(c); ill != "" {
			o.Ills = append(o.Ills, ill)
		}
		if c.Type == corev1.NodeReady {
			o.Health, o.Ready = c.Status, c.Status == corev1.ConditionTrue
		}
	}
	if i := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP }); i >= 0 {
		o.HostAddress = n.Status.Addresses[i].Address
	}
}

// SameNode tells whether two states of a node, nil for none, take the same Pods.
func (o *Object) SameNode(other *Object) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.UID == other.UID && o.Cordoned == other.Cordoned && o.Health == other.Health && slices.Equal(o.Ills, other.Ills) && maps.Equal(o.Labels, other.Labels) &&
		slices.EqualFunc(o.Taints, other.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value })
}

// Tolerates tells whether one of the tolerations is for a taint.
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

// TaintsOf returns the taints of a node that have an effect.
func (o *Object) TaintsOf(effect corev1.TaintEffect) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range o.Taints {
		if taint.Effect == effect {
			out = append(out, taint)
		}
	}
	return out
}

// Zone is where a node is, as failures of nodes are counted; empty if it does not say.
func (o *Object) Zone() string {
	region, zone := o.Labels[corev1.LabelTopologyRegion], o.Labels[corev1.LabelTopologyZone]
	if region == "" && zone == "" {
		return ""
	}
	return region + "/" + zone
}

// Repels tells whether a node has a taint of one of some effects that is not tolerated.
func (o *Object) Repels(tolerations []corev1.Toleration, effects ...corev1.TaintEffect) bool {
	return slices.ContainsFunc(o.Taints, func(taint corev1.Taint) bool {
		return slices.Contains(effects, taint.Effect) && !Tolerates(tolerations, &taint)
	})
}

// Suits tells whether a node is one that a Pod asks for by selector and affinity.
func (o *Object) Suits(spec *corev1.PodSpec) bool {
	if !labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(o.Labels)) {
		return false
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, o.meets)
}

// meets tells whether a node has all that a term asks for; a term that asks for nothing is met
// by none.
func (o *Object) meets(term corev1.NodeSelectorTerm) bool {
	all := func(list []corev1.NodeSelectorRequirement, of labels.Set) bool {
		return !slices.ContainsFunc(list, func(r corev1.NodeSelectorRequirement) bool {
			requirement, err := labels.NewRequirement(r.Key, operator(r.Operator), r.Values)
			return err != nil || !requirement.Matches(of)
		})
	}
	return len(term.MatchExpressions)+len(term.MatchFields) > 0 && all(term.MatchExpressions, o.Labels) &&
		all(term.MatchFields, labels.Set{metav1.ObjectNameField: o.Key.Name})
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

// nodeAffinity is as much of the affinity of a Pod as names its node.
type nodeAffinity struct {
	NodeAffinity struct {
		Required struct {
			Terms []struct {
				MatchFields []corev1.NodeSelectorRequirement `json:"matchFields"`
			} `json:"nodeSelectorTerms"`
		} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	} `json:"nodeAffinity"`
}

// target is the one node that a Pod can go to; empty if there may be several.
func (a *nodeAffinity) target() string {
	if a == nil || len(a.NodeAffinity.Required.Terms) != 1 {
		return ""
	}
	for _, r := range a.NodeAffinity.Required.Terms[0].MatchFields {
		if r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}
