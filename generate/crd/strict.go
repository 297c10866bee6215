// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"go/ast"

	"github.com/steer-dev/steer/generate/markers"
)

// contradictions reports, when strict, markers of a field that cannot all hold.
// Controller-gen lets the last or the stronger one win.
func (c *scope) contradictions(field *ast.Field, name string, set markers.Set, s *Schema) {
	if !c.strict {
		return
	}
	required := []string{validation + "Required", "required", "k8s:required"}
	optional := []string{validation + "Optional", "optional", "k8s:optional"}
	if yes, no := firstOf(set, required), firstOf(set, optional); yes != nil && no != nil {
		c.program.Problemf(yes.Pos, "field %s is both required, by +%s, and optional, by +%s", name, yes.Name, no.Name)
	}
	for _, what := range s.impossible() {
		c.program.Problemf(field.Pos(), "field %s: %s", name, what)
	}
}

func firstOf(set markers.Set, names []string) *markers.Value {
	for _, name := range names {
		for i := range set {
			if set[i].Name == name {
				return &set[i]
			}
		}
	}
	return nil
}

// impossible says which limits of a schema leave no value.
func (s *Schema) impossible() []string {
	var found []string
	if s.Minimum != nil && s.Maximum != nil {
		low, high := *s.Minimum, *s.Maximum
		if low > high || low == high && (s.ExclusiveMinimum || s.ExclusiveMaximum) {
			found = append(found, fmt.Sprintf("no number is at least %v and at most %v", low, high))
		}
	}
	for _, limit := range []struct {
		of        string
		low, high *int64
	}{
		{"length", s.MinLength, s.MaxLength},
		{"number of items", s.MinItems, s.MaxItems},
		{"number of properties", s.MinProperties, s.MaxProperties},
	} {
		if limit.low != nil && limit.high != nil && *limit.low > *limit.high {
			found = append(found, fmt.Sprintf("its %s cannot be at least %d and at most %d", limit.of, *limit.low, *limit.high))
		}
	}
	return found
}
