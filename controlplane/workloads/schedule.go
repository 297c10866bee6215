// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
	"github.com/steer-dev/steer/storage"
)

// bindingDetail is the detail of requests that bind a Pod.
const bindingDetail = "binding"

// assumed is a Pod that has a node once its binding is answered.
type assumed struct {
	uid   types.UID
	bound scheduler.Bound
}

// schedule binds a Pod to a node, or reports why none takes it.
func (t *visit) schedule(p *cluster.Object) {
	if p.Demand.Scheduler != corev1.DefaultSchedulerName || p.Demand.Gated {
		return
	}
	if t.Index.Node(NodeName) == nil && !t.controller.noNode && t.Failures[cluster.NodeKey()] == "" {
		return // when the node has registered, all Pods without a node are due
	}
	if t.rooms == nil {
		t.rooms = newRooms(t)
	}
	volumes, wait := t.volumesOf(p)
	if wait {
		return // for claims that are being bound
	}
	namespace, name := step.SplitName(p.Key.Name)
	asking := &scheduler.Pod{Namespace: namespace, Labels: p.Labels, Demand: p.Demand, Volumes: volumes}
	if t.controller.fateOf(p).Fate == Unschedulable {
		asking.Refused = "node(s) are scripted not to take the pod"
	}
	node, failure := scheduler.Place(t.rooms, asking)
	if node == "" {
		t.unschedulable(p, failure)
		return
	}
	if _, written := t.Written[cluster.NodeOf(node)]; written {
		t.Due.Add(p.Key) // what this turn does to the node comes first
		return
	}
	binding := &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	t.Write(p.Key, step.Request{
		User: step.Scheduler, Method: http.MethodPost, Path: cluster.ResourceOf(cluster.Pods).Object(p.Key) + "/binding",
		ContentType: step.Protobuf, Body: step.Encode(binding), Subject: step.Subject{Key: p.Key, Detail: bindingDetail},
	})
	bound := scheduler.Bound{Namespace: namespace, Labels: p.Labels, Node: node, Demand: p.Demand}
	t.controller.bindings[p.Key] = assumed{p.UID, bound}
	t.rooms.assume(bound)
	t.Tell(cluster.Note{
		User: step.Scheduler, About: p.Key, UID: p.UID, Reason: "Scheduled",
		Message: fmt.Sprintf("Successfully assigned %s to %s", p.Key.Name, node),
	})
}

// noteLimit bounds the messages of Events.
const noteLimit = 1024

// unschedulable reports why no node takes a Pod.
func (t *visit) unschedulable(p *cluster.Object, why string) {
	pod := cluster.Stored[corev1.Pod](t.Turn, p.Key)
	if pod == nil {
		return
	}
	written := t.setPodStatus(step.Scheduler, pod, func(s *corev1.PodStatus) {
		setPodCondition(s, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: why, LastTransitionTime: t.Stamp(), ObservedGeneration: pod.Generation,
		})
	})
	if !written {
		return
	}
	const cut = " ..."
	if len(why) > noteLimit {
		why = why[:noteLimit-len(cut)] + cut
	}
	t.Tell(cluster.Note{User: step.Scheduler, About: p.Key, UID: pod.UID, Warning: true, Reason: "FailedScheduling", Message: why})
}

// rooms is the cluster as the scheduler sees it in one step, with the Pods that the step
// itself gives to nodes, and those whose bindings of earlier steps are under way.
type rooms struct {
	t       *visit
	nodes   []*scheduler.Node
	assumed []scheduler.Bound
	// used is that of nodes with assumed Pods.
	used map[string]*scheduler.Usage
	// labels of namespaces that were asked for.
	labels map[string]labels.Set
}

var _ scheduler.World = (*rooms)(nil)

func newRooms(t *visit) *rooms {
	r := &rooms{t: t, used: map[string]*scheduler.Usage{}, labels: map[string]labels.Set{}}
	for _, node := range t.Index.Nodes() {
		r.nodes = append(r.nodes, node.Room)
	}
	for _, key := range slices.SortedFunc(maps.Keys(t.controller.bindings), step.CompareKeys) {
		a := t.controller.bindings[key]
		if p := t.Index.Objects[key]; p != nil && p.UID == a.uid && p.Node == "" {
			r.assume(a.bound)
		}
	}
	return r
}

// assume counts a Pod that is being bound.
func (r *rooms) assume(p scheduler.Bound) {
	r.assumed = append(r.assumed, p)
	if r.used[p.Node] == nil {
		u := r.t.Index.Used(p.Node)
		r.used[p.Node] = &scheduler.Usage{Pods: u.Pods, Requests: maps.Clone(u.Requests), Ports: maps.Clone(u.Ports)}
	}
	r.used[p.Node].Add(p.Demand, 1)
}

// Nodes implements [scheduler.World].
func (r *rooms) Nodes() []*scheduler.Node { return r.nodes }

// Used implements [scheduler.World].
func (r *rooms) Used(node string) scheduler.Usage {
	if u := r.used[node]; u != nil {
		return *u
	}
	return r.t.Index.Used(node)
}

// Bound implements [scheduler.World].
func (r *rooms) Bound(namespace string) iter.Seq[scheduler.Bound] {
	return r.with(r.t.Index.Bound(namespace), func(p *scheduler.Bound) bool { return namespace == "" || p.Namespace == namespace })
}

// Repelling implements [scheduler.World].
func (r *rooms) Repelling() iter.Seq[scheduler.Bound] {
	return r.with(r.t.Index.Repelling(), func(p *scheduler.Bound) bool { return p.Demand.Repels() })
}

// with yields Pods and those of the assumed ones that meant selects.
func (r *rooms) with(pods iter.Seq[scheduler.Bound], meant func(*scheduler.Bound) bool) iter.Seq[scheduler.Bound] {
	return func(yield func(scheduler.Bound) bool) {
		for p := range pods {
			if !yield(p) {
				return
			}
		}
		for i := range r.assumed {
			if meant(&r.assumed[i]) && !yield(r.assumed[i]) {
				return
			}
		}
	}
}

// NamespaceLabels implements [scheduler.World].
func (r *rooms) NamespaceLabels(name string) labels.Set {
	if known, ok := r.labels[name]; ok {
		return known
	}
	var of labels.Set
	if n := cluster.Stored[metav1.PartialObjectMetadata](r.t.Turn, storage.Key{Bucket: cluster.Namespaces, Name: name}); n != nil {
		of = n.Labels
	}
	r.labels[name] = of
	return of
}

// waking is which of the Pods that look for a node are looked at again in the next step.
type waking struct{ all, related, claiming bool }

// wake makes the Pods due that waking selects.
func (c *Controller) wake() {
	which := c.waking
	c.waking = waking{}
	if which == (waking{}) {
		return
	}
	for key := range c.Index.Unbound() {
		if d := c.Index.Objects[key].Demand; which.all || which.related && d.Relates() || which.claiming && len(d.Claims) > 0 {
			c.Due.Add(key)
		}
	}
}

// lookForRoom notes that Pods may fit a node because of a change of another object than a node: Pods
// that free what they used or that affinity and topology spread count, and claims that are bound.
func (c *Controller) lookForRoom(key storage.Key, before, now *cluster.Object) {
	switch key.Bucket {
	case cluster.Pods:
		took := before != nil && before.Node != "" && !before.Ended()
		takes := now != nil && now.Node != "" && !now.Ended()
		switch {
		case took && (!takes || before.Demand != now.Demand || before.UID != now.UID):
			c.waking.all = true
		case takes && (!took || before.Deleting != now.Deleting || !maps.Equal(before.Labels, now.Labels)):
			c.waking.related = true
		}
	case cluster.Claims, cluster.Volumes:
		c.waking.claiming = true
	}
}
