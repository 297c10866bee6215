// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

const (
	validation = "kubebuilder:validation:"
	items      = validation + "items:"
)

// rule is a marker that changes a schema.
type rule struct {
	def *markers.Definition
	// priority orders the rules of one node; equal ones apply in source order.
	priority int
	apply    func(c *scope, s *schema.Schema, data any) error
}

// The priorities of rules: what decides the type of a value goes before what
// validates it.
const (
	first  = 9
	normal = 10
)

type ruleSet map[ruleKey]*rule

type ruleKey struct {
	name string
	on   markers.Target
}

// rules returns every schema marker.
func rules() ruleSet {
	set := ruleSet{}
	for _, group := range [][]rule{validationRules(), fieldRules(), typeRules(), topologyRules()} {
		for _, r := range group {
			set[ruleKey{r.def.Name, r.def.Target}] = &r
		}
	}
	return set
}

// on makes a rule for one target.
func on[T any](target markers.Target, name, category, summary string, priority int, apply func(c *scope, s *schema.Schema, value T) error) rule {
	return rule{
		def:      markers.Define[T](name, target, markers.Help{Category: category, Summary: summary}),
		priority: priority,
		apply:    func(c *scope, s *schema.Schema, data any) error { return apply(c, s, data.(T)) },
	}
}

// both makes a rule for types and fields.
func both[T any](name, category, summary string, priority int, apply func(s *schema.Schema, value T) error) []rule {
	f := func(_ *scope, s *schema.Schema, value T) error { return apply(s, value) }
	return []rule{
		on(markers.Field, name, category, summary, priority, f),
		on(markers.Type, name, category, summary, priority, f),
	}
}

// everywhere makes a validation rule for types and fields and, under its items
// name, for the items of their arrays.
func everywhere[T any](name, summary string, priority int, apply func(s *schema.Schema, value T) error) []rule {
	return append(
		both(validation+name, "CRD validation", summary, priority, apply),
		both(items+name, "CRD validation", "For array items: "+summary, priority, apply)...)
}

// apply changes a schema as the markers of its node say: first those for the value
// itself, by priority and then in source order, then those for its items.
func (c *scope) apply(set markers.Set, target markers.Target, s *schema.Schema) {
	if len(set) == 0 {
		return
	}
	type step struct {
		*rule
		value markers.Value
	}
	steps := make([]step, 0, len(set))
	for _, value := range set {
		if r := c.rules[ruleKey{value.Name, target}]; r != nil {
			steps = append(steps, step{r, value})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(forItems(a.value.Name), forItems(b.value.Name)), cmp.Compare(a.priority, b.priority))
	})
	for _, step := range steps {
		to := s
		if forItems(step.value.Name) > 0 {
			if s.Type != "array" || s.Items == nil {
				c.program.Problemf(step.value.Pos, "+%s must be applied to an array, found %s", step.value.Name, s.Describe())
				continue
			}
			s.Items = s.Items.Copy()
			to = s.Items
		}
		if err := step.apply(c, to, step.value.Data); err != nil {
			c.program.Problemf(step.value.Pos, "+%s: %v", step.value.Name, err)
		}
	}
}

func forItems(name string) int {
	if strings.HasPrefix(name, items) {
		return 1
	}
	return 0
}

// need is the error of a rule on a value of the wrong type.
func need(ok bool, what string, s *schema.Schema) error {
	if ok {
		return nil
	}
	return fmt.Errorf("must be applied to %s, found %s", what, s.Describe())
}
