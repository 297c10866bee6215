// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disruption keeps the status of PodDisruptionBudgets, by which evictions
// are decided: how many Pods a budget is about, how many of those have to be ready,
// and how many are.
//
// The [Controller] remembers of Pods what it needs, and only where there are
// budgets: elsewhere a write costs one look into a map.
package disruption

import (
	"encoding/json"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Buckets of what is looked at, besides what has Pods.
const (
	budgets = "policy/poddisruptionbudgets"
	pods    = "pods"
)

// Name of the controller.
const Name = "disruption-controller"

// Controller keeps the status of all budgets.
type Controller struct {
	catalog step.Catalog
	// guarded are the namespaces with budgets.
	guarded map[string]*guarded
	// counting are the buckets of what Pods belong to and has said, or may say, how
	// many there should be.
	counting map[string]bool
	due      step.KeySet
	// again is when budgets have to be looked at although nothing was written: Pods
	// whose eviction was allowed and that are still there count again then.
	again step.Alarms
}

// guarded is a namespace with budgets.
type guarded struct {
	budgets step.KeySet
	// pods are all of the namespace, by name; nil until they have been read.
	pods map[string]*member
}

var (
	_ step.Controller = (*Controller)(nil)
	_ step.Waker      = (*Controller)(nil)
)

// New returns a controller that has seen nothing. It finds what Pods belong to
// through the catalog.
func New(catalog step.Catalog) *Controller {
	c := &Controller{catalog: catalog}
	c.forget()
	return c
}

func (c *Controller) forget() {
	c.guarded, c.counting = map[string]*guarded{}, map[string]bool{}
	c.due, c.again = step.KeySet{}, step.Alarms{}
}

// Name implements [step.Controller].
func (*Controller) Name() string { return Name }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	c.forget()
	for rec := range view.Ascend(budgets, "", "") {
		c.see(rec.Key)
	}
}

func (c *Controller) see(key storage.Key) {
	namespace, _ := step.SplitName(key.Name)
	if c.guarded[namespace] == nil {
		c.guarded[namespace] = &guarded{budgets: step.KeySet{}}
	}
	c.guarded[namespace].budgets.Add(key)
	c.due.Add(key)
}

// Filter implements [step.Controller].
func (c *Controller) Filter(e storage.Event) bool {
	key := e.Record.Key
	if key.Bucket == budgets {
		return true
	}
	if len(c.guarded) == 0 || key.Bucket != pods && !c.counting[key.Bucket] {
		return false
	}
	namespace, _ := step.SplitName(key.Name)
	return c.guarded[namespace] != nil
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	key := e.Record.Key
	namespace, name := step.SplitName(key.Name)
	here := c.guarded[namespace]
	switch {
	case key.Bucket == budgets && !e.Deleted:
		c.see(key)
	case here == nil:
	case key.Bucket == budgets:
		delete(c.due, key)
		delete(c.again, key)
		if delete(here.budgets, key); len(here.budgets) == 0 {
			delete(c.guarded, namespace)
		}
	case key.Bucket == pods:
		if here.pods != nil {
			delete(here.pods, name)
			if !e.Deleted {
				here.pods[name] = memberOf(e.Record)
			}
		}
		c.due.Add(here.budgets.Sorted()...)
	case c.counting[key.Bucket]:
		c.due.Add(here.budgets.Sorted()...)
	}
}

// podsOf returns the Pods of a namespace with budgets.
func (c *Controller) podsOf(view storage.View, namespace string) map[string]*member {
	here := c.guarded[namespace]
	if here.pods == nil {
		here.pods = map[string]*member{}
		for rec := range view.Ascend(pods, namespace+"/", "") {
			_, name := step.SplitName(rec.Key.Name)
			here.pods[name] = memberOf(rec)
		}
	}
	return here.pods
}

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	c.again.Ring(now, c.due)
	var out []step.Request
	for _, key := range c.due.Sorted() {
		if rec := view.Get(key); rec != nil {
			if r, needed := c.look(view, rec, now); needed {
				out = append(out, r)
			}
		}
	}
	clear(c.due)
	return out
}

// look returns the request that gives a budget the status it should have.
func (c *Controller) look(view storage.View, rec *storage.Record, now time.Time) (r step.Request, needed bool) {
	budget := &policyv1.PodDisruptionBudget{}
	if json.Unmarshal(rec.Value, budget) != nil || budget.DeletionTimestamp != nil {
		return r, false
	}
	old := budget.Status.DeepCopy()
	recheck := c.judge(view, budget, now)
	delete(c.again, rec.Key)
	if !recheck.IsZero() {
		c.again[rec.Key] = recheck
	}
	if equality.Semantic.DeepEqual(*old, budget.Status) {
		return r, false
	}
	body, err := json.Marshal(budget)
	path := "/apis/policy/v1/namespaces/" + budget.Namespace + "/poddisruptionbudgets/" + budget.Name + "/status"
	return step.Put(step.KubeSystem+Name, path, body, step.Subject{Key: rec.Key}), err == nil
}

// Wake implements [step.Waker].
func (c *Controller) Wake() time.Time { return c.again.Wake() }

// Done implements [step.Controller].
func (c *Controller) Done(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}
