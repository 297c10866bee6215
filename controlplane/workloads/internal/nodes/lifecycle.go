// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes runs node lifecycle, taint eviction and the garbage collection of Pods: it
// turns the conditions of nodes into taints, evicts Pods that do not tolerate them, and
// deletes the Pods of nodes that are gone, and terminated Pods when there are too many. It
// acts as kube-controller-manager does with its defaults.
package nodes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// lifecycleController taints nodes and evicts Pods.
const lifecycleController = step.KubeSystem + "node-controller"

// Pods are evicted from the failed nodes of one zone node by node, and not at all while most
// nodes of a small zone fail: then the control plane itself may be disconnected.
const (
	pace      = 10 * time.Second
	slowPace  = 100 * time.Second
	manyNodes = 50 // in larger zones evictions go on at slowPace
	fewIll    = 2  // with so many failed nodes, or fewer, evictions go on at pace
	mostIll   = 0.55
)

// Controllers are those of node lifecycle, taint eviction and Pod garbage.
type Controllers struct {
	// evictions hold when Pods are evicted that tolerate the taints of their nodes for a time.
	evictions map[types.UID]time.Time
	// missing is since when the nodes of Pods do not exist.
	missing map[string]time.Time
	// given is when a node of a zone last got a taint with the effect NoExecute; waiting are
	// the nodes that may not get one yet.
	given   map[string]time.Time
	waiting step.KeySet
	// zones count the nodes of each, as of the last survey. changed is set if they are out of
	// date, lost if no node was ready.
	zones         map[string]census
	changed, lost bool
	// takenBack are nodes whose taints with the effect NoExecute are to be removed.
	takenBack step.KeySet
	// beats are the last reports of the nodes that are not simulated.
	beats map[types.UID]beat
	// collected is when Pods were last collected because there are too many.
	collected time.Time
}

// New returns controllers that have observed nothing.
func New() *Controllers {
	return &Controllers{
		evictions: map[types.UID]time.Time{}, missing: map[string]time.Time{}, given: map[string]time.Time{},
		waiting: step.KeySet{}, beats: map[types.UID]beat{}, takenBack: step.KeySet{}, zones: map[string]census{}, changed: true,
	}
}

// census counts nodes, and those of them that are not ready.
type census struct{ all, ill int }

// Survey begins a step: if nodes were created, deleted or changed, it counts how many are
// ready. Once none is, evictions from all of them are cancelled.
func (c *Controllers) Survey(m *cluster.Memory) {
	if !c.changed {
		return
	}
	c.changed = false
	clear(c.zones)
	nodes, lost := m.Index.Nodes(), true
	for _, node := range nodes {
		lost = lost && !node.Ready
		if _, excluded := node.Labels["node.kubernetes.io/exclude-disruption"]; excluded {
			continue
		}
		counts := c.zones[node.Zone()]
		if counts.all++; !node.Ready {
			counts.ill++
		}
		c.zones[node.Zone()] = counts
	}
	if lost != c.lost {
		c.lost = lost
		clear(c.takenBack)
		for _, node := range nodes {
			m.Due.Add(node.Key)
			if lost {
				c.takenBack.Add(node.Key)
			}
		}
	}
	m.Due.Add(c.waiting.Sorted()...)
	clear(c.waiting)
}

// Look updates the taints of a node from its conditions.
func (c *Controllers) Look(t *cluster.Turn, key storage.Key) {
	node := t.Index.Objects[key]
	if node == nil {
		return
	}
	delete(c.missing, key.Name)
	if c.silent(t, node) {
		return // the change of its conditions makes it due again
	}
	taints := c.unwell(t, node, toSchedule(node))
	if equal(taints, node.Room.Taints) {
		return
	}
	stored := cluster.Stored[corev1.Node](t, key)
	if stored == nil {
		return
	}
	now := t.Stamp()
	for i := range taints {
		if !slices.ContainsFunc(node.Room.Taints, func(had corev1.Taint) bool { return taints[i].MatchTaint(&had) }) {
			taints[i].TimeAdded = &now
		}
	}
	stored.Spec.Taints = taints
	t.Update(lifecycleController, key, "", stored)
}

func equal(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) })
}

// conditional reports whether a taint with the effect NoSchedule follows from a condition.
func conditional(taint corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable:
		return taint.Effect == corev1.TaintEffectNoSchedule
	}
	return false
}

// toSchedule returns the taints of a node, those with the effect NoSchedule as its
// conditions require. A node that has never reported the condition Ready keeps the taint of
// new nodes.
func toSchedule(node *cluster.Object) []corev1.Taint {
	keys := slices.Clone(node.Ills)
	if node.Room.Unschedulable {
		keys = append(keys, corev1.TaintNodeUnschedulable)
	}
	if node.Health == "" {
		keys = append(keys, corev1.TaintNodeNotReady)
	}
	out := slices.DeleteFunc(slices.Clone(node.Room.Taints), func(taint corev1.Taint) bool {
		return conditional(taint) && (!slices.Contains(keys, taint.Key))
	})
	for _, key := range keys {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
		if node.Health == "" && key == corev1.TaintNodeNotReady {
			continue
		}
		if !slices.ContainsFunc(out, func(has corev1.Taint) bool { return has.MatchTaint(&taint) }) {
			out = append(out, taint)
		}
	}
	return out
}

// unwell returns taints with the one that evicts Pods from a node that is not ready, if the
// node has it or may get it now.
func (c *Controllers) unwell(t *cluster.Turn, node *cluster.Object, taints []corev1.Taint) []corev1.Taint {
	wants := map[corev1.ConditionStatus]string{
		corev1.ConditionFalse: corev1.TaintNodeNotReady, corev1.ConditionUnknown: corev1.TaintNodeUnreachable,
	}[node.Health]
	isGiven := func(taint corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoExecute && (taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable)
	}
	given := slices.ContainsFunc(taints, isGiven)
	_, leave := c.takenBack[node.Key]
	if leave && !given {
		delete(c.takenBack, node.Key)
	}
	if node.Health == "" || !given && wants == "" {
		return taints
	}
	rest := slices.DeleteFunc(slices.Clone(taints), func(taint corev1.Taint) bool {
		return isGiven(taint) && (taint.Key != wants || leave)
	})
	if wants == "" || leave || len(rest) == len(taints) && given || !given && !c.mayGiveUp(t, node) {
		return rest
	}
	return append(rest, corev1.Taint{Key: wants, Effect: corev1.TaintEffectNoExecute})
}

// mayGiveUp reports whether Pods may be evicted from a node now. If another node of its zone
// got its taint just before, the node becomes due again later.
func (c *Controllers) mayGiveUp(t *cluster.Turn, node *cluster.Object) bool {
	zone, wait := node.Zone(), pace
	counts := c.zones[zone]
	partly := counts.ill < counts.all && counts.ill > fewIll && float64(counts.ill) >= mostIll*float64(counts.all)
	if c.lost || partly && counts.all <= manyNodes {
		c.waiting.Add(node.Key)
		return false
	}
	if partly {
		wait = slowPace
	}
	if next := c.given[zone].Add(wait); t.Now.Before(next) {
		t.Later(node.Key, next)
		return false
	}
	c.given[zone] = t.Now
	return true
}

// Changed observes a change of a node from one state to another, nil for none, and makes its
// Pods due.
func (c *Controllers) Changed(m *cluster.Memory, before, now *cluster.Object, at time.Time) {
	name := ""
	switch {
	case now != nil:
		name = now.Key.Name
	case before != nil:
		name = before.Key.Name
	}
	m.Due.Add(m.Index.On(name)...)
	if now == nil {
		delete(c.beats, before.UID)
		delete(c.waiting, before.Key)
		delete(c.takenBack, before.Key)
	}
	c.changed = true
	if before != nil && now != nil && before.UID == now.UID && before.Ready && now.Health == corev1.ConditionUnknown {
		m.Note(cluster.Note{
			User: lifecycleController, About: now.Key, UID: now.UID, Reason: "NodeNotReady", Message: "Node " + name + " status is now: NodeNotReady",
		}, at)
	}
}

// Unready marks a Pod on a node without heartbeats as not ready.
func (c *Controllers) Unready(t *cluster.Turn, p *cluster.Object) {
	node := t.Index.Node(p.Node)
	if node == nil || node.Health != corev1.ConditionUnknown || !p.Ready {
		return
	}
	pod := cluster.Stored[corev1.Pod](t, p.Key)
	if pod == nil {
		return
	}
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodReady {
			condition.Status, condition.LastTransitionTime = corev1.ConditionFalse, t.Stamp()
		}
	}
	t.Update(lifecycleController, p.Key, "status", pod)
	t.Tell(cluster.Note{User: lifecycleController, About: p.Key, UID: p.UID, Warning: true, Reason: "NodeNotReady", Message: "Node is not ready"})
}
