// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"go/ast"

	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// contradictions reports, when strict, markers of a field that cannot all hold.
// Controller-gen lets the last or the stronger one win.
func (c *scope) contradictions(field *ast.Field, name string, set markers.Set, s *schema.Schema) {
	if !c.strict {
		return
	}
	required := []string{validation + "Required", "required", "k8s:required"}
	optional := []string{validation + "Optional", "optional", "k8s:optional"}
	if yes, no := firstOf(set, required), firstOf(set, optional); yes != nil && no != nil {
		c.program.Problemf(yes.Pos, "field %s is both required, by +%s, and optional, by +%s", name, yes.Name, no.Name)
	}
	for _, what := range s.Impossible() {
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
