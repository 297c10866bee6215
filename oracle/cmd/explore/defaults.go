// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// richest is how many recorded objects of a kind lose their fields: those with the most.
const richest = 6

// compareDefaults creates, dry, the recorded objects of every kind without some of their
// fields: each field once, all but each field of an object, each field empty, each field
// that the schema has beside them as an empty object, and random subsets of all, so that
// what servers fill in is compared.
type compareDefaults struct {
	pair   *pair
	shapes *shapes
	random *rand.Rand
	found  *findings
	sent   map[string]bool
	// created counts the objects that kube-apiserver took, by kind.
	created map[string]int
}

// run compares all seeds; rounds is the number of random subsets of each object.
func (c *compareDefaults) run(ctx context.Context, seeds []seed, rounds int) error {
	byKind := map[string][]seed{}
	for _, s := range seeds {
		if s.kind != "SelfSubjectRulesReview" { // its rules come in any order
			byKind[s.gvk] = append(byKind[s.gvk], s)
		}
	}
	for _, gvk := range slices.Sorted(maps.Keys(byKind)) {
		all := byKind[gvk]
		slices.SortStableFunc(all, func(a, b seed) int { return cmp.Compare(len(c.places(b)), len(c.places(a))) })
		for _, s := range all[:min(richest, len(all))] {
			if err := c.one(ctx, s, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compareDefaults) places(s seed) []place {
	m := mutator{random: c.random, shapes: c.shapes}
	return m.places(s, s.body)[1:]
}

// one compares what becomes of one object.
func (c *compareDefaults) one(ctx context.Context, s seed, rounds int) error {
	n := len(c.places(s))
	for i := range n {
		for _, how := range []func(place) string{without, alone, emptied} {
			if err := c.ask(ctx, s, func(all []place) []string { return []string{how(all[i])} }); err != nil {
				return err
			}
		}
		for _, name := range c.missing(c.places(s)[i]) {
			if err := c.ask(ctx, s, func(all []place) []string { return []string{begun(all[i], name)} }); err != nil {
				return err
			}
		}
	}
	for range rounds {
		share := 1 + c.random.IntN(9) // tenths of the fields that go
		if err := c.ask(ctx, s, func(all []place) []string {
			var how []string
			for _, p := range slices.Backward(all) { // inner fields before those around them
				if c.random.IntN(10) < share {
					if _, field := p.holder.(map[string]any); field && c.random.IntN(4) > 0 {
						how = append(how, without(p))
					} else {
						how = append(how, emptied(p))
					}
				}
			}
			return how
		}); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the object with a change to both servers, unless the same was sent before.
func (c *compareDefaults) ask(ctx context.Context, s seed, change func([]place) []string) error {
	changed := s
	changed.body = clone(s.body).(map[string]any)
	m := mutator{random: c.random, shapes: c.shapes}
	how := change(m.places(changed, changed.body)[1:])
	text, err := json.Marshal(changed.body)
	if err != nil {
		return err
	}
	key := s.target + string(text)
	if c.sent[key] {
		return nil
	}
	c.sent[key] = true
	r := &request{method: "POST", target: s.creation(), body: changed.body, how: slices.DeleteFunc(how, func(h string) bool { return h == "" })}
	want, got, err := c.pair.ask(ctx, r)
	if err != nil {
		return err
	}
	if strings.HasPrefix(want, "201 ") {
		c.created[s.kind]++
	}
	c.found.add(s.kind, r, want, got)
	return nil
}

// without takes a field away; elements of lists stay.
func without(p place) string {
	if object, ok := p.holder.(map[string]any); ok {
		delete(object, p.key)
		return "without " + p.path
	}
	return ""
}

// alone takes away what is beside a field.
func alone(p place) string {
	object, ok := p.holder.(map[string]any)
	if !ok || strings.Count(p.path, ".") == 1 {
		return ""
	}
	maps.DeleteFunc(object, func(key string, _ any) bool { return key != p.key })
	return "only " + p.path
}

// emptied empties an object, a list or a text.
func emptied(p place) string {
	switch p.value().(type) {
	case map[string]any:
		p.set(map[string]any{})
	case []any:
		p.set([]any{})
	case string:
		p.set("")
	default:
		return ""
	}
	return "empty " + p.path
}

// missing returns the fields of an object, other than those of scalars, that it does
// not have.
func (c *compareDefaults) missing(p place) []string {
	object, ok := p.value().(map[string]any)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.shape.names), func(name string) bool {
		_, has := object[name]
		inner := c.shapes.field(p.shape, name)
		return has || inner.Type == "array" || len(inner.Properties) == 0
	})
}

// begun gives an object a field that is an empty object.
func begun(p place, name string) string {
	object, ok := p.value().(map[string]any)
	if !ok {
		return ""
	}
	object[name] = map[string]any{}
	return fmt.Sprintf("%s.%s = {}", p.path, name)
}
