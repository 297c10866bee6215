// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
	"github.com/steer-dev/steer/storage"
)

// NodeOf is the key of a node.
func NodeOf(name string) storage.Key { return storage.Key{Bucket: Nodes, Name: name} }

// LeaseOf is the key of the Lease of a node.
func LeaseOf(node string) storage.Key {
	return storage.Key{Bucket: Leases, Name: corev1.NamespaceNodeLease + "/" + node}
}

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

// Used returns what the Pods of a node take of it.
func (x *Index) Used(node string) scheduler.Usage {
	if u := x.used[node]; u != nil {
		return *u
	}
	return scheduler.Usage{}
}

// Bound yields the Pods that have a node and have not ended, in no order: those of a
// namespace, or all for the empty one.
func (x *Index) Bound(namespace string) iter.Seq[scheduler.Bound] {
	return func(yield func(scheduler.Bound) bool) {
		if namespace != "" {
			x.yieldBound(x.pods[namespace], yield)
			return
		}
		for _, keys := range x.pods {
			if !x.yieldBound(keys, yield) {
				return
			}
		}
	}
}

// Repelling yields those of them whose anti-affinity keeps others away.
func (x *Index) Repelling() iter.Seq[scheduler.Bound] {
	return func(yield func(scheduler.Bound) bool) { x.yieldBound(x.repelling, yield) }
}

func (x *Index) yieldBound(keys step.KeySet, yield func(scheduler.Bound) bool) bool {
	for key := range keys {
		p := x.Objects[key]
		if p.Node == "" || p.Ended() {
			continue
		}
		namespace, _ := step.SplitName(key.Name)
		if !yield(scheduler.Bound{Namespace: namespace, Labels: p.Labels, Deleting: p.Deleting, Node: p.Node, Demand: p.Demand}) {
			return false
		}
	}
	return true
}

// On returns the Pods of a node; those that are on none for the empty name.
func (x *Index) On(node string) []storage.Key { return x.on[node].Sorted() }

// Unbound yields the Pods that are on no node, in no order.
func (x *Index) Unbound() iter.Seq[storage.Key] { return maps.Keys(x.on[""]) }

// CountOn returns how many Pods a node has.
func (x *Index) CountOn(node string) int { return len(x.on[node]) }

// CountEnded returns how many Pods have terminated and are not being deleted.
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
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), step.CompareKeys(a.Key, b.Key))
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

// readNode reads the fields of a node.
func (o *Object) readNode(rec *storage.Record) {
	o.Room = &scheduler.Node{Name: rec.Key.Name, Labels: o.Labels}
	o.Simulated = egress.Simulated(rec.Key.Name, o.Labels)
	var n struct {
		Spec struct {
			Unschedulable bool           `json:"unschedulable"`
			Taints        []corev1.Taint `json:"taints"`
		} `json:"spec"`
		Status struct {
			Conditions  []corev1.NodeCondition `json:"conditions"`
			Addresses   []corev1.NodeAddress   `json:"addresses"`
			Allocatable corev1.ResourceList    `json:"allocatable"`
		} `json:"status"`
	}
	if step.Decode(rec, &n) != nil {
		return
	}
	o.Room.Unschedulable, o.Room.Taints = n.Spec.Unschedulable, n.Spec.Taints
	o.Room.Allocatable = scheduler.ResourcesOf(n.Status.Allocatable)
	o.Room.Pods = o.Room.Allocatable[corev1.ResourcePods]
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if ill := illOf(c); ill != "" {
			o.Ills = append(o.Ills, ill)
		}
		if c.Type == corev1.NodeReady {
			o.Health, o.Ready, o.Heartbeat = c.Status, c.Status == corev1.ConditionTrue, c.LastHeartbeatTime.Time
		}
	}
	if i := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP }); i >= 0 {
		o.HostAddress = n.Status.Addresses[i].Address
	}
}

// SameNode reports whether two states of a node, nil for none, take the same Pods and run them alike.
func (o *Object) SameNode(other *Object) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.UID == other.UID && o.Room.Unschedulable == other.Room.Unschedulable && o.Health == other.Health && slices.Equal(o.Ills, other.Ills) && maps.Equal(o.Labels, other.Labels) &&
		maps.Equal(o.Room.Allocatable, other.Room.Allocatable) &&
		slices.EqualFunc(o.Room.Taints, other.Room.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value })
}

// TaintsOf returns the taints of a node that have an effect.
func (o *Object) TaintsOf(effect corev1.TaintEffect) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range o.Room.Taints {
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

// Repels reports whether a node has a taint of one of some effects that is not tolerated.
func (o *Object) Repels(tolerations []corev1.Toleration, effects ...corev1.TaintEffect) bool {
	return slices.ContainsFunc(o.Room.Taints, func(taint corev1.Taint) bool {
		return slices.Contains(effects, taint.Effect) && !scheduler.Tolerates(tolerations, &taint)
	})
}

// nodeAffinity is the part of the affinity of a Pod that can name its node.
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
