// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// Explain says how the schema of a type or of a field in it, TYPE or TYPE.FIELD by
// Go or JSON names, came about. The program must have been asked for the type.
func (g *Generator) Explain(p *load.Program, decl *load.TypeDecl, field string) (string, error) {
	s := newSchemas(p, &g.Options)
	flat := s.flat(schema.Ref{Package: decl.Package, Name: decl.Spec.Name.Name})
	var out strings.Builder
	name := decl.Spec.Name.Name
	if field == "" {
		fmt.Fprintf(&out, "%s\n  declared at %s as %s\n", name, p.Fset.Position(decl.Spec.Pos()), kindOf(decl.Spec.Type))
		explainMarkers(&out, p, "its markers", p.TypeMarkers(decl))
		return out.String() + explainSchema(flat), nil
	}
	x, ok := decl.Spec.Type.(*ast.StructType)
	if !ok {
		return "", fmt.Errorf("%s is no struct: it has no field %s", name, field)
	}
	c := &scope{builder: s.builder, pkg: decl.Package, decl: decl}
	for _, f := range x.Fields.List {
		for _, goName := range fieldNames(f) {
			tag, _ := jsonTag(f)
			jsonName, _, _ := strings.Cut(tag, ",")
			if goName != field && jsonName != field || goName == "" {
				continue
			}
			fmt.Fprintf(&out, "%s.%s\n  declared at %s as %s\n  named %q in JSON\n", name, goName, p.Fset.Position(f.Pos()), types.ExprString(f.Type), jsonName)
			set := p.FieldMarkers(decl, f)
			byDefault := p.PackageMarkers(decl.Package).Has(validation + "Optional")
			fmt.Fprintf(&out, "  %s\n", c.whyRequired(f, goName, byDefault))
			c.explainType(&out, f.Type)
			explainMarkers(&out, p, "the field's markers, which go before those of its type", set)
			property := flat.Properties[jsonName]
			if property == nil {
				return out.String() + "it is not in the schema\n", nil
			}
			return out.String() + explainSchema(property), nil
		}
	}
	return "", fmt.Errorf("%s has no field %s of its own: ask for the struct that it embeds", name, field)
}

func kindOf(expr ast.Expr) string {
	if _, ok := expr.(*ast.StructType); ok {
		return "a struct"
	}
	return types.ExprString(expr)
}

func (c *scope) whyRequired(field *ast.Field, name string, optionalByDefault bool) string {
	f, ok := c.field(field, name)
	if !ok {
		return "left out of the schema"
	}
	for _, marker := range []struct{ name, says string }{
		{validation + "Optional", "optional"}, {validation + "Required", "required"},
		{"optional", "optional"}, {"k8s:optional", "optional"}, {"required", "required"}, {"k8s:required", "required"},
	} {
		if f.set.Has(marker.name) {
			return marker.says + ", because of +" + marker.name
		}
	}
	switch {
	case optionalByDefault:
		return "optional, because the package says +" + validation + "Optional"
	case f.inline:
		return "embedded: its fields count by themselves"
	case f.omitEmpty:
		return "optional, because its json tag says omitempty or omitzero"
	}
	return "required, because its json tag has no omitempty and no marker says otherwise"
}

// explainType follows the named types that a field's type is made of.
func (c *scope) explainType(out *strings.Builder, expr ast.Expr) {
	s := c.inner().expr(expr)
	for s.Items != nil || s.Additional != nil {
		if s.Items != nil {
			s = s.Items
		} else {
			s = s.Additional
		}
	}
	for s.Ref != nil {
		ref := *s.Ref
		if known(ref.Package.Path, ref.Name, c.options.EmbeddedMetadata) != nil {
			fmt.Fprintf(out, "  type %s.%s has a schema of its own, whatever its Go form\n", ref.Package.Path, ref.Name)
			return
		}
		decl := ref.Package.Decl(ref.Name)
		if decl == nil {
			return
		}
		explainMarkers(out, c.program, fmt.Sprintf("type %s.%s (%s)", ref.Package.Path, ref.Name, c.program.Fset.Position(decl.Spec.Pos())), c.program.TypeMarkers(decl))
		s = c.schemaOf(ref)
	}
}

func explainMarkers(out *strings.Builder, p *load.Program, whose string, set markers.Set) {
	fmt.Fprintf(out, "  %s:\n", whose)
	if len(set) == 0 {
		out.WriteString("    none\n")
	}
	for _, m := range slices.Clone(set) {
		fmt.Fprintf(out, "    +%s %v (%s)\n", m.Name, m.Data, p.Fset.Position(m.Pos))
	}
}

func explainSchema(s *schema.Schema) string {
	w := schema.NewWriter(nil)
	w.Schema(4, s)
	return "  which makes:\n" + string(w.Out)
}
