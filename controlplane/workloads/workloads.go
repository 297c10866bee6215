// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads makes workload objects behave as if a cluster ran them:
// Deployments roll out, Pods become Ready, Jobs complete.
//
// The [Controller] is a step.Controller, so that it acts deterministically: the
// same writes at the same times give the same requests. It sends them through
// the API server under the names of the components that it simulates: the scheduler,
// the kubelet of one node, and the controllers of Deployments, ReplicaSets,
// ReplicationControllers, StatefulSets, DaemonSets, Jobs, CronJobs, volumes,
// EndpointSlices, Endpoints and their mirrors, load balancers, nodes and the garbage collection of Pods.
//
// What it does as a cluster does: names, labels, owners, the order of a rollout,
// revisions, the counts and conditions of every status, adoption of Pods,
// minReadySeconds, progress and Job deadlines, graceful deletion, claims of
// StatefulSets, the endpoints of Services. Services and Events are written once
// Pods and their owners have nothing to do.
//
// An object waits for the requests about it alone: a request that an admission webhook
// holds back delays no other object, while one of the five senders of its identity and
// kind is free.
//
// What it does not do: no container runs. Nothing is pulled, mounted, probed or logged, and every
// persistent volume claim is bound to a volume that exists in name only.
// A Pod has the outcome that [Options.Outcomes] script for it, or else it becomes
// Ready at once; Pods of Jobs succeed at once. A Pod that is deleted ends at once,
// however long it may take.
//
// There is one node from the start, [NodeName], with 64 CPUs, 256Gi of memory and room for 10,000
// Pods; [Options.NoNode] leaves it out. Every node with the label [SimulatedLabel] is simulated
// like it, once its status says that it is ready. All other nodes belong to others: Pods are
// scheduled to them, and evicted and collected as from any node, but their status is not written.
//
// Pods are scheduled by the filters of kube-scheduler, with its messages: cordons, taints, node
// selectors and required node affinity, host ports, requests, the node affinity of volumes,
// topology spread constraints and required affinity between Pods. Of the nodes that remain the
// one is chosen whose CPU and memory are requested least, then the one with the fewest Pods, then
// the first by name; PreferNoSchedule taints and preferred node affinity come first, other
// preferences have no effect. Pods that fit nowhere stay Pending, say why, and are looked at again
// when nodes, Pods, claims or namespaces change. No Pod is preempted for another.
//
// The condition Ready of simulated nodes is what clients write: the simulation does not change
// it. While it is False or Unknown, the node's Pods are not run and not
// ended, and what kube-controller-manager does then is done, with its defaults but without its
// periods of looking: taints by condition, eviction of the Pods that do not tolerate them
// or have for as long as they do, one node of a zone every ten seconds, none while no
// node is ready or most of a zone are not. Where it is Unknown, the Pods are said not to be ready,
// as the node controller of a cluster does. Pods of a node that is deleted are
// collected 40 seconds later; the node of the start registers again when it is deleted. The Lease of a
// simulated node that is ready holds for an hour and is renewed every 15 minutes. Nodes of others of
// which neither a Lease nor a heartbeat is seen for 50 seconds become Unknown, as in a cluster.
package workloads

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/jobs"
	"github.com/steer-dev/steer/controlplane/workloads/internal/nodes"
	"github.com/steer-dev/steer/controlplane/workloads/internal/replicas"
	"github.com/steer-dev/steer/controlplane/workloads/internal/revisioned"
	"github.com/steer-dev/steer/controlplane/workloads/internal/services"
	"github.com/steer-dev/steer/storage"
)

// NodeName is the name of the node that is simulated from the start.
const NodeName = cluster.NodeName

// SimulatedLabel, with the value "true", marks the nodes that are simulated. The Pods
// of nodes without it are run by others.
const SimulatedLabel = cluster.SimulatedLabel

// Options of a simulated cluster. With the zero value every Pod becomes ready or completes.
type Options struct {
	// Outcomes script the Pods; the first one that selects a Pod
	// applies. Default: Pods of Jobs complete, all others become ready, at once.
	Outcomes []Outcome
	// NoNode leaves out the node that is simulated from the start: Pods wait until nodes
	// are created.
	NoNode bool
	// LoadBalancers is the range of the addresses of Services whose type is LoadBalancer, and
	// whose loadBalancerClass is not set. Nothing listens there. Default: 203.0.113.0/24, which is for
	// documentation. "none": they get no address.
	LoadBalancers string
}

// defaultBalancers is the range of load balancers unless options say otherwise.
const defaultBalancers = "203.0.113.0/24"

// balancers returns the range of load balancers; the zero one for none.
func (o *Options) balancers() (netip.Prefix, error) {
	if o.LoadBalancers == "none" {
		return netip.Prefix{}, nil
	}
	out, err := netip.ParsePrefix(cmp.Or(o.LoadBalancers, defaultBalancers))
	if err != nil {
		return out, fmt.Errorf("workloads: load balancers: %q is no range of addresses: write one such as %s, or none", o.LoadBalancers, defaultBalancers)
	}
	return out, nil
}

// Controller is everything that makes workloads behave.
type Controller struct {
	*cluster.Memory
	outcomes []outcome
	noNode   bool
	// balancers is the range of their addresses.
	balancers netip.Prefix
	// begun is when Pods were started, in nanoseconds; their status holds seconds.
	begun map[types.UID]time.Time
	// warned holds why claims are not bound, as the last Event says.
	warned   map[types.UID]string
	services *services.Controllers
	nodes    *nodes.Controllers
	// bindings are the Pods that requests under way give a node.
	bindings map[storage.Key]assumed
	// deferred counts the steps in a row that have deferred Services and Events.
	deferred int
	// refused reports that a request was refused since the last step: the next one may be
	// delayed.
	refused bool
	// waking selects the Pods without a node that may fit one now.
	waking waking
	// now is the time of the last step.
	now time.Time
}

var (
	_ step.Pipelined = (*Controller)(nil)
	_ step.Waker     = (*Controller)(nil)
)

// New returns a controller. Invalid outcomes and ranges are errors.
func New(o Options) (*Controller, error) {
	balancers, err := o.balancers()
	if err != nil {
		return nil, err
	}
	c := &Controller{noNode: o.NoNode, balancers: balancers, Memory: cluster.NewMemory(), bindings: map[storage.Key]assumed{}}
	for i, asked := range o.Outcomes {
		parsed, err := asked.parse()
		if err != nil {
			return nil, fmt.Errorf("workloads: outcome %d: %w", i, err)
		}
		c.outcomes = append(c.outcomes, parsed)
	}
	c.forget()
	return c, nil
}

func (c *Controller) forget() {
	c.Memory.Forget()
	c.begun, c.warned = map[types.UID]time.Time{}, map[types.UID]string{}
	c.services, c.nodes = services.New(c.balancers), nodes.New()
}

// Name implements [step.Controller].
func (c *Controller) Name() string { return "workloads" }

// Pipelined implements [step.Pipelined]: an object waits for the requests about it alone.
func (c *Controller) Pipelined() {}

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for _, bucket := range cluster.Buckets() {
		for rec := range view.Ascend(bucket, "", "") {
			if c.Index.Put(rec) {
				c.Due.Add(rec.Key)
			}
		}
	}
	c.Due.Add(cluster.NodeKey(), nodes.Ended())
}

// Filter implements [step.Controller].
func (c *Controller) Filter(e storage.Event) bool {
	switch bucket := e.Record.Key.Bucket; bucket {
	case cluster.Endpoints:
		return c.concernsService(e)
	case cluster.AttributesClasses:
		return !e.Deleted // claims may wait for one
	case cluster.Namespaces:
		return c.Index.CountOn("") > 0 // affinity may be to Pods of namespaces with certain labels
	default:
		return cluster.Follows(bucket)
	}
}

// concernsService reports whether a Service has to be looked at because of its Endpoints: they
// were deleted, or a user writes them because it has no selector.
func (c *Controller) concernsService(e storage.Event) bool {
	s := c.Index.Objects[askedFor(e.Record.Key)]
	return s != nil && (e.Deleted || len(s.Selects) == 0)
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	key := e.Record.Key
	switch key.Bucket {
	case cluster.Endpoints:
		if c.concernsService(e) {
			c.Due.Add(askedFor(key))
		}
		return
	case cluster.Namespaces:
		c.waking.related = true
		return
	case cluster.AttributesClasses:
		c.Due.Add(c.Index.Of(cluster.Claims)...)
		return
	}
	before := c.Index.Objects[key]
	if e.Deleted {
		c.Index.Remove(key)
		delete(c.Timers, key)
		delete(c.Failures, key)
		if before != nil {
			delete(c.begun, before.UID)
			delete(c.warned, before.UID)
			c.nodes.Forget(c.Memory, before)
		}
		if key == cluster.NodeKey() || key.Bucket == cluster.Services {
			c.Due.Add(key)
		}
	} else {
		c.Index.Put(e.Record)
		c.Due.Add(key)
	}
	c.lookForClaims(e)
	now := c.Index.Objects[key]
	c.lookForServices(before, now)
	c.lookForRoom(key, before, now)
	if before == nil && now != nil {
		c.NoteCreation(now)
	}
	switch {
	case key.Bucket == cluster.Nodes:
		c.lookForNodes(before, now)
	case key.Bucket == cluster.Pods && nodes.TooMany(c.Memory):
		c.Due.Add(nodes.Ended())
	}
	for _, state := range []*cluster.Object{before, now} {
		if state == nil {
			continue
		}
		if before == nil || now == nil { // its children have it, or have it no longer
			c.Due.Add(c.Index.Children[state.UID].Sorted()...)
		}
		if state.Owner.UID == "" {
			c.lookForOwners(key, before, now)
			continue
		}
		c.Due.Add(askedFor(state.Owner.Key))
		// A Deployment that recreates waits for the last Pod.
		if grand := c.Index.Objects[state.Owner.Key]; grand != nil && e.Deleted && grand.Owner.UID != "" {
			c.Due.Add(grand.Owner.Key)
		}
	}
}

// askedFor returns the object to look at for an owner: for Endpoints, their Service.
func askedFor(owner storage.Key) storage.Key {
	if owner.Bucket == cluster.Endpoints {
		owner.Bucket = cluster.Services
	}
	return owner
}

// lookForNodes makes the objects due that depend on whether a node takes Pods.
func (c *Controller) lookForNodes(before, now *cluster.Object) {
	if before.SameNode(now) {
		return
	}
	c.Due.Add(c.Index.Of(cluster.DaemonSets)...)
	c.nodes.Changed(c.Memory, before, now, c.now)
	if before == nil {
		for _, p := range c.Index.On(now.Key.Name) {
			c.Due.Add(c.Index.ServicesOf(c.Index.Objects[p])...) // which leave Pods without a node out
		}
	}
	c.waking.all = true // Pods may have waited for it, or for a domain without it
}

// lookForOwners makes those due that might adopt an object.
func (c *Controller) lookForOwners(key storage.Key, before, now *cluster.Object) {
	if now == nil || now.Owner.UID != "" || !cluster.Adoptable(key.Bucket) {
		return
	}
	if before != nil && before.Owner.UID == "" && before.UID == now.UID && before.Deleting == now.Deleting && labels.Equals(before.Labels, now.Labels) {
		return
	}
	namespace, _ := step.SplitName(key.Name)
	c.Due.Add(c.Index.Adopters(namespace)...)
}

// lookForClaims makes the objects due that may have waited for the deletion of a claim, or for a
// volume without a claimRef.
func (c *Controller) lookForClaims(e storage.Event) {
	key := e.Record.Key
	switch {
	case key.Bucket == cluster.Claims && e.Deleted:
		namespace, _ := step.SplitName(key.Name)
		c.Due.Add(c.Index.Adopters(namespace)...)
	case key.Bucket == cluster.Volumes && !e.Deleted && c.Index.Objects[key] != nil && c.Index.Objects[key].Owner.UID == "":
		c.Due.Add(c.Index.Of(cluster.Claims)...)
	}
}

// lookForServices makes the Services of a Pod due whose endpoints change with it.
func (c *Controller) lookForServices(before, now *cluster.Object) {
	if before.SameTo(now) {
		return
	}
	for _, p := range []*cluster.Object{before, now} {
		if p != nil && p.Key.Bucket == cluster.Pods {
			c.Due.Add(c.Index.ServicesOf(p)...)
		}
	}
}

// mostDeferred is how many steps in a row leave Services and Events for later while Pods
// and their owners have something to do.
const mostDeferred = 8

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	c.Timers.Ring(now, c.Due)
	c.nodes.Survey(c.Memory)
	c.wake()
	c.now = now
	t := &visit{Turn: c.Begin(view, now), controller: c}
	keys := c.Due.Sorted()
	clear(c.Due)
	var later []storage.Key
	for _, key := range keys {
		_, written := t.Written[key]
		switch {
		case c.Has(key), written:
			c.Due.Add(key) // what earlier steps, or this one, do to it comes first
		case key.Bucket == cluster.Services:
			later = append(later, key)
		default:
			t.look(key)
		}
	}
	switch {
	case len(later) == 0 && !c.Untold():
	case c.defers(t):
		c.Due.Add(later...)
	default:
		for _, key := range later {
			c.services.Look(t.Turn, key)
		}
		t.Record()
	}
	c.refused = false
	return t.End()
}

// defers reports whether Services and Events wait for the next step, so that no request
// waits for them: that is so while there is something else to do that succeeds, but not for
// ever.
func (c *Controller) defers(t *visit) bool {
	c.deferred++
	if len(t.Requests) == 0 || c.deferred > mostDeferred || c.refused {
		c.deferred = 0
		return false
	}
	return true
}

// visit is one step.
type visit struct {
	*cluster.Turn
	controller *Controller
	// rooms is what the scheduler knows of the cluster; nil before the first Pod is scheduled.
	rooms *rooms
}

// look passes one object to its controller.
func (t *visit) look(key storage.Key) {
	if key == nodes.Ended() {
		t.controller.nodes.Sweep(t.Turn)
		return
	}
	switch key.Bucket {
	case cluster.Nodes:
		t.lookNode(key)
	case cluster.Leases:
		t.lookLease(key)
	case cluster.Pods:
		t.lookPod(key)
	case cluster.ReplicaSets, cluster.Controllers:
		replicas.ReplicaSet(t.Turn, key)
	case cluster.Deployments:
		replicas.Deployment(t.Turn, key)
	case cluster.Jobs:
		jobs.Job(t.Turn, key)
	case cluster.StatefulSets:
		revisioned.StatefulSet(t.Turn, key)
	case cluster.DaemonSets:
		revisioned.DaemonSet(t.Turn, key)
	case cluster.CronJobs:
		jobs.CronJob(t.Turn, key)
	case cluster.Claims:
		t.lookClaim(key)
	case cluster.Volumes:
		t.lookVolume(key)
	}
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.Timers.Wake() }

// Done implements [step.Controller]. What was refused is looked at again.
func (c *Controller) Done(r step.Request, err error) {
	key := r.Subject.Key
	failure := ""
	if err != nil {
		failure = messageOf(err)
	}
	c.Reported(r, failure, c.Failures[key] == "", c.now)
	if r.Subject.Detail == bindingDetail {
		delete(c.bindings, key)
	}
	switch {
	case r.Subject.Detail == cluster.Telling: // nothing follows from it
	case err != nil:
		c.refused, c.waking.all = true, true // others may fit where a Pod was not bound
		c.Due.Add(key)
		if r.Subject.Detail == cluster.Creation {
			c.Failures[key] = failure
		}
	case r.Subject.Detail == cluster.Creation && c.Failures[key] != "":
		delete(c.Failures, key)
		c.Due.Add(key)
	}
}

// messageOf returns the message of a Status with which the server refused a request, for
// conditions.
func messageOf(err error) string {
	var said interface{ Message() string }
	if errors.As(err, &said) {
		return said.Message()
	}
	return err.Error()
}

// fateOf returns the outcome of a Pod.
func (c *Controller) fateOf(p *cluster.Object) Outcome {
	namespace, _ := step.SplitName(p.Key.Name)
	for _, o := range c.outcomes {
		if (o.Namespace == "" || o.Namespace == namespace) && o.selector.Matches(labels.Set(p.Labels)) {
			return o.Outcome
		}
	}
	if p.Owner.Key.Bucket == cluster.Jobs {
		return Outcome{Fate: Complete}
	}
	return Outcome{Fate: Ready}
}
