// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// Explain says how the schema of a type, or of a field below it, came about. path
// leads from the type to the field by names in JSON or Go, through pointers, lists
// and maps and into the types of fields: "spec.template.containers.image"; empty
// is the type itself. The program must have been asked for the type.
func (g *Generator) Explain(p *load.Program, decl *load.TypeDecl, path string) (string, error) {
	b := newSchemas(p, &g.Options).builder
	name := decl.Spec.Name.Name
	for path != "" {
		var step string
		step, path, _ = strings.Cut(path, ".")
		at, field, goName, err := b.fieldOf(decl, strings.TrimSuffix(step, "[]"))
		if err != nil {
			return "", err
		}
		if path == "" {
			return g.explainField(p, at, field, goName)
		}
		c := &scope{builder: b, pkg: at.Package, decl: at}
		ref := c.innermost(field.Type)
		if ref == nil {
			return "", fmt.Errorf("%s.%s is %s: it has no field %s", at.Spec.Name.Name, goName, types.ExprString(field.Type), path)
		}
		if decl = ref.Package.Decl(ref.Name); decl == nil {
			return "", fmt.Errorf("%s.%s is of a type whose declaration is not known: %s.%s", at.Spec.Name.Name, goName, ref.Package.Path, ref.Name)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n  declared at %s as %s\n", name, p.Fset.Position(decl.Spec.Pos()), kindOf(decl.Spec.Type))
	explainMarkers(&out, p, "its markers", p.TypeMarkers(decl))
	return out.String() + explainSchema(newSchemas(p, &g.Options).flat(schema.Ref{Package: decl.Package, Name: name})), nil
}

// Position is where a field below a type is declared, with path as for [Generator.Explain];
// of a field that there is not, where the type that would have it is declared. The program must have been asked for the type.
func (g *Generator) Position(p *load.Program, decl *load.TypeDecl, path string) token.Position {
	b := newSchemas(p, &g.Options).builder
	at := decl.Spec.Pos()
	for path != "" {
		var step string
		step, path, _ = strings.Cut(path, ".")
		in, field, _, err := b.fieldOf(decl, strings.TrimRight(step, "[]{}"))
		if err != nil {
			break
		}
		at = field.Pos()
		ref := (&scope{builder: b, pkg: in.Package, decl: in}).innermost(field.Type)
		if ref == nil {
			break
		}
		if decl = ref.Package.Decl(ref.Name); decl == nil {
			break
		}
		if path != "" {
			at = decl.Spec.Pos()
		}
	}
	return p.Fset.Position(at)
}

func (g *Generator) explainField(p *load.Program, decl *load.TypeDecl, f *ast.Field, goName string) (string, error) {
	s := newSchemas(p, &g.Options)
	name := decl.Spec.Name.Name
	flat := s.flat(schema.Ref{Package: decl.Package, Name: name})
	c := &scope{builder: s.builder, pkg: decl.Package, decl: decl}
	tag, _ := jsonTag(f)
	jsonName, _, _ := strings.Cut(tag, ",")
	var out strings.Builder
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

// fieldOf finds a field of a struct, or of those that it embeds, by its name in Go
// or JSON. decl is the struct that declares it.
func (b *builder) fieldOf(decl *load.TypeDecl, name string) (_ *load.TypeDecl, field *ast.Field, goName string, err error) {
	x, ok := decl.Spec.Type.(*ast.StructType)
	if !ok {
		return nil, nil, "", fmt.Errorf("%s is no struct: it has no field %s", decl.Spec.Name.Name, name)
	}
	var embedded []*ast.Field
	for _, f := range x.Fields.List {
		tag, _ := jsonTag(f)
		jsonName, _, _ := strings.Cut(tag, ",")
		for _, goName := range fieldNames(f) {
			if goName != "" && (goName == name || jsonName == name) {
				return decl, f, goName, nil
			}
		}
		if len(f.Names) == 0 && jsonName == "" {
			embedded = append(embedded, f)
		}
	}
	c := &scope{builder: b, pkg: decl.Package, decl: decl}
	for _, f := range embedded {
		if ref := c.innermost(f.Type); ref != nil {
			if inner := ref.Package.Decl(ref.Name); inner != nil {
				if at, f, goName, err := b.fieldOf(inner, name); err == nil {
					return at, f, goName, nil
				}
			}
		}
	}
	return nil, nil, "", fmt.Errorf("%s has no field %s", decl.Spec.Name.Name, name)
}

// innermost is the named type that a type's elements are of, through pointers,
// lists and maps; nil if it has no name.
func (c *scope) innermost(expr ast.Expr) *schema.Ref {
	s := c.inner().expr(expr)
	for s.Items != nil || s.Additional != nil {
		if s.Items != nil {
			s = s.Items
		} else {
			s = s.Additional
		}
	}
	return s.Ref
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
	for next := c.innermost(expr); next != nil; {
		ref := *next
		if known(ref.Package.Path, ref.Name, c.options.EmbeddedMetadata) != nil {
			fmt.Fprintf(out, "  type %s.%s has a schema of its own, whatever its Go form\n", ref.Package.Path, ref.Name)
			return
		}
		decl := ref.Package.Decl(ref.Name)
		if decl == nil {
			return
		}
		explainMarkers(out, c.program, fmt.Sprintf("type %s.%s (%s)", ref.Package.Path, ref.Name, c.program.Fset.Position(decl.Spec.Pos())), c.program.TypeMarkers(decl))
		next = c.schemaOf(ref).Ref
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
