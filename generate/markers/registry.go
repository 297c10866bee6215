// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"cmp"
	"slices"
	"strings"
)

// Registry holds definitions by name and target. It is filled once and then only
// read.
type Registry struct {
	defs [3]map[string]*Definition
}

// NewRegistry returns a registry with the definitions; a later one replaces an
// earlier one of the same name and target.
func NewRegistry(defs ...*Definition) *Registry {
	r := new(Registry)
	for i := range r.defs {
		r.defs[i] = map[string]*Definition{}
	}
	for _, def := range defs {
		r.defs[def.Target][def.Name] = def
	}
	return r
}

// Lookup finds the definition for the text of a marker on a target. Where both the
// long name ("a:b:c" of "+a:b:c=1") and the short one ("a:b") are defined, the
// long one wins.
func (r *Registry) Lookup(text string, on Target) *Definition {
	long, short, _ := name(text)
	if def := r.defs[on][long]; def != nil {
		return def
	}
	return r.defs[on][short]
}

// All returns every definition, sorted by category, name and target.
func (r *Registry) All() []*Definition {
	var all []*Definition
	for _, defs := range r.defs {
		for _, def := range defs {
			all = append(all, def)
		}
	}
	slices.SortFunc(all, func(a, b *Definition) int {
		return cmp.Or(strings.Compare(a.Help.Category, b.Help.Category), strings.Compare(a.Name, b.Name), cmp.Compare(a.Target, b.Target))
	})
	return all
}

// Suggest returns the defined name that is closest to what the marker's text says,
// or "" when none is close.
func (r *Registry) Suggest(text string) string {
	long, short, _ := name(text)
	var best closest
	for _, defs := range r.defs {
		for _, def := range defs {
			wanted := long
			if len(def.Args) > 0 && !def.Anonymous() {
				wanted = short
			}
			best.consider(wanted, def.Name)
		}
	}
	return best.name
}

// suggest returns ` (did you mean "x"?)` for a mistyped argument, or nothing.
func (d *Definition) suggest(argument string) string {
	var best closest
	for _, arg := range d.Args {
		best.consider(argument, arg.Name)
	}
	if best.name == "" {
		return ""
	}
	return ` (did you mean "` + best.name + `"?)`
}

// closest keeps the candidate with the smallest edit distance that is small for
// the length of what was written.
type closest struct {
	name     string
	distance int
}

func (c *closest) consider(written, candidate string) {
	limit := max(1, min(4, len(written)/4))
	d := distance(strings.ToLower(written), strings.ToLower(candidate), limit)
	if d > limit || c.name != "" && (d > c.distance || d == c.distance && candidate >= c.name) {
		return
	}
	c.name, c.distance = candidate, d
}

// distance is the number of single-byte edits and swaps of neighbours between a
// and b, or some number above limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
