// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disruption keeps the status of PodDisruptionBudgets, by which evictions
// are decided: how many Pods a budget is about, how many of those have to be ready,
// and how many are.
//
// The [Controller] costs the writes of Pods in a namespace without budgets one look
// into a map.
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
	// byNamespace are the budgets there are.
	byNamespace map[string]step.KeySet
	due         step.KeySet
	// again is when budgets have to be looked at although nothing was written: Pods
	// whose eviction was allowed and that are still there count again then.
	again map[storage.Key]time.Time
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
	c.byNamespace, c.due, c.again = map[string]step.KeySet{}, step.KeySet{}, map[storage.Key]time.Time{}
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
	if c.byNamespace[namespace] == nil {
		c.byNamespace[namespace] = step.KeySet{}
	}
	c.byNamespace[namespace].Add(key)
	c.due.Add(key)
}

// Observe implements [step.Controller]. How many Pods there should be is said by
// objects of any kind, so that every write in a namespace with budgets counts.
func (c *Controller) Observe(e storage.Event) {
	key := e.Record.Key
	namespace, _ := step.SplitName(key.Name)
	if key.Bucket != budgets {
		for budget := range c.byNamespace[namespace] {
			c.due.Add(budget)
		}
		return
	}
	if !e.Deleted {
		c.see(key)
		return
	}
	delete(c.due, key)
	delete(c.again, key)
	if delete(c.byNamespace[namespace], key); len(c.byNamespace[namespace]) == 0 {
		delete(c.byNamespace, namespace)
	}
}

// Step implements [step.Controller].
func (c *Controller) Step(view storage.View, now time.Time) []step.Request {
	for key, at := range c.again {
		if !now.Before(at) {
			delete(c.again, key)
			c.due.Add(key)
		}
	}
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
func (c *Controller) Wake() time.Time {
	var first time.Time
	for _, at := range c.again {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Report implements [step.Controller].
func (c *Controller) Report(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}
