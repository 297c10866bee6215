// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"encoding/json"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Who gathers roles, as a user and as a field manager.
const (
	aggregator        = step.KubeSystem + "clusterrole-aggregation-controller"
	aggregatorManager = "clusterrole-aggregation-controller"
)

// Aggregator keeps the rules of every ClusterRole with an aggregationRule equal
// to those of the cluster roles that it selects, in the order of the selectors,
// then of the names, each rule once. It reads a role when something has changed,
// and never the roles of a fresh cluster, which are right as they are.
type Aggregator struct {
	roles map[storage.Key]*gathered
	// changed reports that the roles may select other rules than they did.
	changed bool
}

// gathered is what is known of a cluster role.
type gathered struct {
	record *storage.Record
	object *object // nil until it is looked at
}

var _ step.Controller = (*Aggregator)(nil)

// NewAggregator returns an aggregator that knows of no roles.
func NewAggregator() *Aggregator { return &Aggregator{roles: map[storage.Key]*gathered{}} }

// Name implements [step.Controller].
func (a *Aggregator) Name() string { return aggregatorManager }

// Reset implements [step.Controller].
func (a *Aggregator) Reset(view storage.View) {
	*a = *NewAggregator()
	same := 0
	for rec := range view.Ascend(clusterRoles, "", "") {
		a.roles[rec.Key] = &gathered{record: rec}
		if pristine(rec) != nil {
			same++
		} else {
			a.changed = true
		}
	}
	for _, t := range fresh().ordered {
		if t.Key.Bucket == clusterRoles {
			same--
		}
	}
	a.changed = a.changed || same != 0
}

// Filter implements [step.Controller].
func (*Aggregator) Filter(e storage.Event) bool { return e.Record.Key.Bucket == clusterRoles }

// Handle implements [step.Controller].
func (a *Aggregator) Handle(e storage.Event) {
	a.changed = true
	if e.Deleted {
		delete(a.roles, e.Record.Key)
		return
	}
	a.roles[e.Record.Key] = &gathered{record: e.Record}
}

// Sync implements [step.Controller].
func (a *Aggregator) Sync(storage.View, time.Time) []step.Request {
	if !a.changed {
		return nil
	}
	a.changed = false
	ordered := step.KeySet{}
	for key, g := range a.roles {
		g.read()
		ordered.Add(key)
	}
	keys := ordered.Sorted()
	var out []step.Request
	for _, key := range keys {
		role := a.roles[key].object
		if role == nil || role.AggregationRule == nil {
			continue
		}
		rules := a.gather(keys, key, role.AggregationRule)
		if equality.Semantic.DeepEqual(rules, role.Rules) {
			continue
		}
		out = append(out, apply(aggregator, key, aggregatorManager, encoded(&object{
			TypeMeta:   metav1.TypeMeta{Kind: "ClusterRole", APIVersion: rbacv1.SchemeGroupVersion.String()},
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Rules: rules,
		})))
	}
	return out
}

// read looks at the role; one that cannot be read is left alone.
func (g *gathered) read() {
	if g.object != nil {
		return
	}
	o := &object{}
	if json.Unmarshal(g.record.Value, o) == nil {
		g.object = o
	}
}

// gather returns the rules of what a role selects.
func (a *Aggregator) gather(keys []storage.Key, of storage.Key, by *rbacv1.AggregationRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range by.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&by.ClusterRoleSelectors[i])
		if err != nil {
			continue // validation lets none of these in
		}
		for _, key := range keys {
			from := a.roles[key].object
			if key == of || from == nil || !selector.Matches(labels.Set(from.Labels)) {
				continue
			}
			out = union(out, from.Rules)
		}
	}
	return out
}

// Done implements [step.Controller].
func (a *Aggregator) Done(_ step.Request, err error) {
	if err != nil {
		a.changed = true
	}
}
