// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads makes workload objects behave as if a cluster ran them:
// Deployments roll out, Pods become Ready, Jobs complete.
//
// The [Controller] is a step.Controller, so that it acts deterministically: the
// same writes at the same times give the same requests. It sends them through
// the API server under the names of those whose part it plays: the scheduler,
// the kubelet of one node, and the controllers of Deployments, ReplicaSets,
// ReplicationControllers, StatefulSets, DaemonSets, Jobs, CronJobs and volumes.
//
// What it does as a cluster does: names, labels, owners, the order of a rollout,
// revisions, the counts and conditions of every status, adoption of Pods,
// minReadySeconds, progress and Job deadlines, graceful deletion, claims of
// StatefulSets.
//
// What it does not do: no container runs. There is one node, [NodeName], with
// room for everything; nothing is pulled, mounted, probed or logged, and every
// persistent volume claim is bound to a volume that exists in name only.
// A cordoned node takes no more Pods, but affinity, taints and priorities have no
// effect. A Pod has the outcome that
// [Options.Outcomes] script for it, or else it becomes Ready at once; Pods of
// Jobs succeed at once. A Pod that is deleted ends at once, however long it may
// take. Rules for the failure of Job Pods and success policies are not followed.
// No Events are recorded.
package workloads

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// NodeName is the name of the simulated node.
const NodeName = "steer-node"

// Options of a simulated cluster. The zero value is one where all goes well.
type Options struct {
	// Outcomes script what becomes of Pods; the first one that selects a Pod
	// decides. Default: Pods of Jobs complete, all others become ready, at once.
	Outcomes []Outcome
}

// Controller is everything that makes workloads behave.
type Controller struct {
	outcomes []outcome
	index    *index
	// due holds what has to be looked at in the next step, timers what has to be
	// looked at when time has passed.
	due    step.KeySet
	timers map[storage.Key]time.Time
	// begun tells when Pods were started, to the nanosecond.
	begun map[types.UID]time.Time
	// failures holds why objects could not be created for an owner.
	failures map[storage.Key]string
}

var (
	_ step.Controller = (*Controller)(nil)
	_ step.Waker      = (*Controller)(nil)
)

// New returns a controller. It refuses outcomes that cannot be.
func New(o Options) (*Controller, error) {
	c := &Controller{}
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
	c.index, c.due = newIndex(), step.KeySet{}
	c.timers, c.begun, c.failures = map[storage.Key]time.Time{}, map[types.UID]time.Time{}, map[storage.Key]string{}
}

// Name implements [step.Controller].
func (c *Controller) Name() string { return "workloads" }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for _, bucket := range buckets() {
		for rec := range view.Ascend(bucket, "", "") {
			if c.index.put(rec) {
				c.due.Add(rec.Key)
			}
		}
	}
	c.due.Add(nodeKey())
}

// Observe implements [step.Controller].
func (c *Controller) Observe(e storage.Event) {
	key := e.Record.Key
	if !follows(key.Bucket) {
		return
	}
	before := c.index.objects[key]
	if e.Deleted {
		c.index.remove(key)
		delete(c.timers, key)
		delete(c.failures, key)
		if before != nil {
			delete(c.begun, before.uid)
		}
		if key == nodeKey() {
			c.due.Add(key)
		}
	} else {
		c.index.put(e.Record)
		c.due.Add(key)
	}
	c.lookForClaims(e)
	now := c.index.objects[key]
	if key == nodeKey() {
		c.due.Add(c.index.of(daemonSets)...)
		if before != nil && now != nil && before.cordoned && !now.cordoned {
			c.due.Add(c.index.of(pods)...) // some may have waited for it
		}
	}
	for _, state := range []*object{before, now} {
		if state == nil {
			continue
		}
		if before == nil || now == nil { // its children have it, or have it no longer
			c.due.Add(c.index.children[state.uid].Sorted()...)
		}
		if state.owner.uid == "" {
			c.lookForOwners(key, before, now)
			continue
		}
		c.due.Add(state.owner.key)
		// A Deployment that recreates waits for the last Pod.
		if grand := c.index.objects[state.owner.key]; grand != nil && e.Deleted && grand.owner.uid != "" {
			c.due.Add(grand.owner.key)
		}
	}
}

// lookForOwners makes those due that might adopt an object.
func (c *Controller) lookForOwners(key storage.Key, before, now *object) {
	if now == nil || now.owner.uid != "" || !adoptable(key.Bucket) {
		return
	}
	if before != nil && before.owner.uid == "" && labels.Equals(before.labels, now.labels) {
		return
	}
	namespace, _ := step.SplitName(key.Name)
	c.due.Add(c.index.adopters(namespace)...)
}

// lookForClaims makes those due that may have waited for a claim to go, or for a
// volume that is for no claim in particular.
func (c *Controller) lookForClaims(e storage.Event) {
	key := e.Record.Key
	switch {
	case key.Bucket == claims && e.Deleted:
		namespace, _ := step.SplitName(key.Name)
		c.due.Add(c.index.adopters(namespace)...)
	case key.Bucket == volumes && !e.Deleted && c.index.objects[key] != nil && c.index.objects[key].owner.uid == "":
		c.due.Add(c.index.of(claims)...)
	}
}

// Step implements [step.Controller].
func (c *Controller) Step(view storage.View, now time.Time) []step.Request {
	for key, at := range c.timers {
		if !at.After(now) {
			delete(c.timers, key)
			c.due.Add(key)
		}
	}
	t := &turn{Controller: c, view: view, now: now, written: step.KeySet{}}
	keys := c.due.Sorted()
	clear(c.due)
	for _, key := range keys {
		if _, written := t.written[key]; written {
			c.due.Add(key) // what this turn does to it comes first
			continue
		}
		t.look(key)
	}
	return t.requests
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time {
	var first time.Time
	for _, at := range c.timers {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Report implements [step.Controller]. What was refused is looked at again.
func (c *Controller) Report(r step.Request, err error) {
	key := r.Subject.Key
	switch {
	case err != nil:
		c.due.Add(key)
		if r.Subject.Detail == creation {
			c.failures[key] = messageOf(err)
		}
	case r.Subject.Detail == creation && c.failures[key] != "":
		delete(c.failures, key)
		c.due.Add(key)
	}
}

// messageOf is what a server said that refused a request, which goes into
// conditions.
func messageOf(err error) string {
	var said interface{ Message() string }
	if errors.As(err, &said) {
		return said.Message()
	}
	return err.Error()
}

// fateOf returns what becomes of a Pod.
func (c *Controller) fateOf(p *object) Outcome {
	namespace, _ := step.SplitName(p.key.Name)
	for _, o := range c.outcomes {
		if (o.Namespace == "" || o.Namespace == namespace) && o.selector.Matches(labels.Set(p.labels)) {
			return o.Outcome
		}
	}
	if p.owner.key.Bucket == jobs {
		return Outcome{Fate: Complete}
	}
	return Outcome{Fate: Ready}
}
