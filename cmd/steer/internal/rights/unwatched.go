// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// goType is a type by its package and name.
type goType struct{ importPath, name string }

// set is where a set of children is made, and how its file writes their type.
type set struct {
	at   token.Position
	text string
}

// watched notes controller.Children[T], and what watches T.
func (f *fileOf) watched(member string, of ast.Expr, at token.Position) {
	importPath, name := f.Named(of)
	is := goType{importPath, name}
	switch member {
	case "Children":
		if _, ok := f.children[is]; !ok {
			f.children[is] = set{at, types.ExprString(of)}
		}
	case "Owns", "Watches", "Kind", "References":
		f.follows[is] = true
	}
}

// Unwatched are the sets of children of a kind that no controller watches: they are read of
// the cache, which does not have them, and nothing notices when they change.
func (s *Sources) Unwatched() []Finding {
	var found []Finding
	for is, made := range s.children {
		if _, _, known := s.project.ResourceOf(is.importPath, is.name); !known || s.follows[is] || s.anyKind {
			continue
		}
		found = append(found, Finding{s.place(made.at), fmt.Sprintf(
			"no controller watches these children, so they are neither found nor followed; add controller.Owns[%s]() to controller.Add", made.text), true})
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Place, b.Place) })
	return found
}
