// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd turns Go types with markers into CustomResourceDefinitions.
//
// A type goes through four stages:
//
//   - build: each type declaration becomes a [schema.Schema] of its own, in which
//     other types are references; markers and documentation are applied (build.go,
//     rules.go);
//   - resolve: references are replaced by the schemas they mean
//     ([schema.Resolver]);
//   - flatten: every allOf is merged into its parent ([schema.Flattener]);
//   - emit: the result is written as YAML (emit.go).
package crd

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// metaPath is the package whose TypeMeta and ObjectMeta make a struct a kind.
const metaPath = "k8s.io/apimachinery/pkg/apis/meta/v1"

// ToolVersion is the version of controller-gen whose output is matched; it is
// written into an annotation as that tool does.
const ToolVersion = "v0.23.0"

// Options are the arguments of the generator on the command line. The zero value
// is the default of each.
type Options struct {
	IgnoreUnexportedFields bool     `marker:",optional" help:"Skip struct fields that are not exported instead of refusing those without json tags."`
	AllowDangerousTypes    bool     `marker:",optional" help:"Allow float32 and float64."`
	MaxDescLen             *int     `help:"Shorten descriptions to this many bytes, at a sentence or word; 0 removes them."`
	CRDVersions            []string `marker:"crdVersions,optional" help:"The API versions of the definition itself; v1 is the only one left."`
	EmbeddedMetadata       bool     `marker:"generateEmbeddedObjectMeta,optional" help:"Give embedded metadata (in templates) a schema, so that it is not pruned."`
	HeaderFile             string   `marker:",optional" help:"A file to put before each definition, for example a licence."`
	Year                   string   `marker:",optional" help:"What replaces \" YEAR\" in the header."`
	PreserveUnknownFields  *bool    `marker:"deprecatedV1beta1CompatibilityPreserveUnknownFields" help:"Set spec.preserveUnknownFields, for definitions that began as v1beta1."`
	OmitToolVersion        bool     `marker:",optional" help:"Leave out the annotation with the tool's version."`
	// What controller-gen does not have.
	OmitForeignDescriptions bool `marker:",optional" help:"Leave out the descriptions of types of other modules and packages than those asked for (not of controller-gen)."`

	fullMetadata bool
}

// Generator makes a definition of every kind in the roots of a program.
type Generator struct {
	Options Options
	// Strict refuses what other tools let pass, and understands the markers
	// that they do not have.
	Strict bool

	made []*definition
}

// Markers are the definitions of the markers that the generator reads.
func Markers() []*markers.Definition {
	defs := slices.Concat(specMarkers(), optInMarkers())
	for _, r := range rules() {
		defs = append(defs, r.def)
	}
	return defs
}

// Kind is a type that is a Kubernetes kind.
type Kind struct {
	Group, Version string
	*load.TypeDecl
}

// Kinds finds the kinds in the roots of a program: structs that embed TypeMeta
// and ObjectMeta, and what has the same name in another version of the group.
func Kinds(p *load.Program) []Kind {
	var kinds []Kind
	type groupKind struct{ group, kind string }
	found := map[groupKind]bool{}
	for _, pkg := range p.Roots {
		if p.PackageMarkers(pkg).Has("kubebuilder:skip") {
			continue
		}
		group, version := GroupVersion(p, pkg)
		for _, decl := range pkg.Decls() {
			kinds = append(kinds, Kind{group, version, decl})
			if isKind(pkg, decl) {
				found[groupKind{group, decl.Spec.Name.Name}] = true
			}
		}
	}
	return slices.DeleteFunc(kinds, func(k Kind) bool { return !found[groupKind{k.Group, k.Spec.Name.Name}] })
}

// GroupVersion is the API group and version of a package; both are empty for a
// package without a group.
func GroupVersion(p *load.Program, pkg *load.Package) (group, version string) {
	set := p.PackageMarkers(pkg)
	group, ok := markers.First[string](set, "groupName")
	if !ok {
		return "", ""
	}
	version, ok = markers.First[string](set, "versionName")
	if !ok {
		version = pkg.Name
	}
	return group, version
}

func isKind(pkg *load.Package, decl *load.TypeDecl) bool {
	x, ok := decl.Spec.Type.(*ast.StructType)
	if !ok {
		return false
	}
	var typeMeta, objectMeta bool
	for _, field := range x.Fields.List {
		if len(field.Names) > 0 {
			continue
		}
		var name, path string
		switch t := field.Type.(type) {
		case *ast.SelectorExpr:
			x, ok := t.X.(*ast.Ident)
			if !ok {
				continue
			}
			if name = t.Sel.Name; name == "TypeMeta" || name == "ObjectMeta" {
				path = pkg.ImportPath(decl.File, x.Name)
			}
		case *ast.Ident: // of a dot import
			if name = t.Name; name == "TypeMeta" || name == "ObjectMeta" {
				path = pkg.ImportPath(decl.File, ".")
			}
		}
		if path != metaPath {
			continue
		}
		typeMeta = typeMeta || name == "TypeMeta"
		objectMeta = objectMeta || name == "ObjectMeta"
	}
	return typeMeta && objectMeta
}

// Need asks the program for the kinds' types.
func (g *Generator) Need(p *load.Program) {
	for _, kind := range Kinds(p) {
		p.Need(kind.Package, kind.Spec.Name.Name)
	}
}

// Generate makes the definitions. Problems of the source are recorded in
// the program.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	for _, v := range g.Options.CRDVersions {
		if v != "v1" {
			return nil, fmt.Errorf("definitions of apiextensions.k8s.io/%s cannot be made: crdVersions can only be v1", v)
		}
	}
	header, err := p.Header(g.Options.HeaderFile, g.Options.Year)
	if err != nil {
		return nil, err
	}
	s := newSchemas(p, &g.Options)
	if g.Strict {
		s.beStrict(p)
	}
	w := schema.NewWriter(g.Options.MaxDescLen)
	var outputs []load.Output
	g.made = g.definitions(p, s)
	for _, d := range g.made {
		outputs = append(outputs, load.Output{
			Dir: d.dir, Name: d.file(),
			Data: slices.Concat([]byte(header), []byte("---\n"), d.write(w)),
		})
	}
	return outputs, nil
}

// Schemas makes the flat schemas of kinds, for other generators.
type Schemas struct{ all *schemas }

// NewSchemas is for the kinds of a program.
func NewSchemas(p *load.Program, options Options) Schemas { return Schemas{newSchemas(p, &options)} }

// Of returns the schema of a kind as a definition has it.
func (s Schemas) Of(kind Kind) *schema.Schema { return s.all.kind(kind) }

// schemas makes flat schemas of types.
type schemas struct {
	builder   *builder
	resolver  *schema.Resolver
	flattener *schema.Flattener
}

func newSchemas(p *load.Program, options *Options) *schemas {
	b := &builder{program: p, options: options, rules: rules(), schemas: map[schema.Ref]*schema.Schema{}}
	return &schemas{
		builder:  b,
		resolver: &schema.Resolver{SchemaOf: b.schemaOf},
		flattener: &schema.Flattener{Conflict: func(at *schema.Schema, a, c string) {
			p.Problemf(at.Pos, "the type is said to be both %s and %s", a, c)
		}},
	}
}

// beStrict reports what other tools let pass.
func (s *schemas) beStrict(p *load.Program) {
	s.builder.strict = true
	s.resolver.Cyclic = func(use *schema.Schema) {
		p.Problemf(use.Pos, "type %s contains itself, which the schema of a definition cannot say: "+
			"use apiextensionsv1.JSON, or add +kubebuilder:pruning:PreserveUnknownFields and +kubebuilder:validation:Schemaless", use.Ref.Name)
	}
}

// kind is the schema of a kind in its definition.
func (s *schemas) kind(k Kind) *schema.Schema {
	return plainMetadata(s.flat(schema.Ref{Package: k.Package, Name: k.Spec.Name.Name}))
}

func (s *schemas) flat(ref schema.Ref) *schema.Schema { return s.flattener.Flat(s.resolver.Root(ref)) }

// definitions makes a definition for each group and kind, sorted by kind, then
// group.
func (g *Generator) definitions(p *load.Program, s *schemas) []*definition {
	byName := map[string][]Kind{}
	var names []string
	for _, kind := range Kinds(p) {
		name := kind.Spec.Name.Name
		if kind.Group != "" {
			name += "." + kind.Group
		}
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], kind)
	}
	slices.Sort(names)
	var all []*definition
	for _, name := range names {
		kinds := byName[name]
		d := newDefinition(kinds[0].Group, kinds[0].Spec.Name.Name)
		d.preserveUnknownField = g.Options.PreserveUnknownFields
		for _, kind := range kinds {
			set := p.TypeMarkers(kind.TypeDecl)
			if set.Has("kubebuilder:skipversion") {
				continue
			}
			d.versions = append(d.versions, version{name: kind.Version, served: true, schema: s.kind(kind), decl: kind.TypeDecl})
			d.apply(p, set, &d.versions[len(d.versions)-1])
			if dir, ok := markers.First[string](p.PackageMarkers(kind.Package), definitionsMarker); ok {
				d.dir = dir
			}
		}
		if len(d.versions) == 0 {
			continue
		}
		slices.SortStableFunc(d.versions, func(a, b version) int { return strings.Compare(a.name, b.name) })
		if len(d.versions) == 1 {
			d.versions[0].storage = true
		}
		if !g.Options.OmitToolVersion {
			set(&d.annotations, "controller-gen.kubebuilder.io/version", ToolVersion)
		}
		d.check(p, g.Strict)
		all = append(all, d)
	}
	return all
}

// plainMetadata gives the metadata of the object itself the only schema that the
// API server accepts.
func plainMetadata(s *schema.Schema) *schema.Schema {
	if s.Properties["metadata"] == nil {
		return s
	}
	out := s.Copy()
	out.Properties = make(map[string]*schema.Schema, len(s.Properties))
	for name, property := range s.Properties {
		out.Properties[name] = property
	}
	out.Properties["metadata"] = &schema.Schema{Type: "object"}
	return out
}
