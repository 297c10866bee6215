// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes apply configurations: for each struct that a kind is made
// of, a twin in which every field is optional, with methods that set fields, so that
// a program can say exactly which fields it wants to own in a server-side apply.
//
//	// +kubebuilder:ac:generate=true                    (package)
//	// +kubebuilder:ac:output:package=applyconfiguration (package)
//	// +kubebuilder:ac:generate=true                    (type; kinds do without)
//
// Beside them go a function from kinds to apply configurations and the schema that
// extracting what a manager owns from an object needs.
package apply

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
)

// Options are the arguments of the generator on the command line.
type Options struct {
	HeaderFile      string   `marker:",optional" help:"A file to put at the top of each output, for example a licence."`
	External        []string `marker:"externalApplyConfigurations,optional" help:"Apply configurations that exist already, each as package.Type@package."`
	OmitToolVersion bool     `marker:",optional" help:"Accepted for compatibility: the output names no version."`
}

// Generator makes the apply configurations of every root that asks for them.
type Generator struct{ Options Options }

const (
	generateMarker = "kubebuilder:ac:generate"
	outputMarker   = "kubebuilder:ac:output:package"
	metaPath       = "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaApplyPath  = "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Markers are the definitions of the markers that the generator reads.
func Markers() []*markers.Definition {
	help := func(summary string) markers.Help { return markers.Help{Category: "apply", Summary: summary} }
	own := []*markers.Definition{
		markers.Define[bool](generateMarker, markers.Package, help("Kinds of the package get apply configurations.")),
		markers.Define[bool](generateMarker, markers.Type, help("The type gets an apply configuration with a constructor, or none.")),
		markers.Define[string](outputMarker, markers.Package, help("Where they go, relative to the package. Default: applyconfiguration.")),
	}
	return append(own, crd.Markers()...)
}

// Wanted reports whether any root asks for apply configurations.
func Wanted(p *load.Program) bool {
	return slices.ContainsFunc(p.Roots, func(pkg *load.Package) bool { return enabled(p, pkg) })
}

func enabled(p *load.Program, pkg *load.Package) bool {
	on, _ := markers.First[bool](p.PackageMarkers(pkg), generateMarker)
	return on
}

// kinds are the types of a package that get a constructor.
func kinds(p *load.Program, pkg *load.Package) []*load.TypeDecl {
	var found []*load.TypeDecl
	for _, decl := range pkg.Decls() {
		set := p.TypeMarkers(decl)
		on, said := markers.First[bool](set, generateMarker)
		if !said {
			on = set.Has("kubebuilder:resource") || hasTag(decl, "+genclient")
		}
		if on {
			found = append(found, decl)
		}
	}
	return found
}

// hasTag reports whether a type's comments hold a tag of the client generators.
func hasTag(decl *load.TypeDecl, tag string) bool {
	for _, line := range comments(decl) {
		if strings.TrimSpace(line) == tag {
			return true
		}
	}
	return false
}

// place is where the apply configurations of a package go: the directory below it,
// and theirs below that.
func place(p *load.Program, pkg *load.Package) (dir, sub string) {
	dir = "applyconfiguration"
	if said, ok := markers.First[string](p.PackageMarkers(pkg), outputMarker); ok {
		dir = said
	}
	return dir, strings.ToLower(path.Join(path.Base(path.Dir(pkg.Path)), path.Base(pkg.Path)))
}

// Configured returns the package in which the generator puts the apply
// configuration of a kind, "" if its markers ask for none.
func Configured(p *load.Program, kind *load.TypeDecl) string {
	if !enabled(p, kind.Package) || !slices.ContainsFunc(kinds(p, kind.Package), func(d *load.TypeDecl) bool { return d.Spec == kind.Spec }) {
		return ""
	}
	dir, sub := place(p, kind.Package)
	return path.Join(kind.Package.Path, dir, sub)
}

// Need asks the program for the types.
func (g *Generator) Need(p *load.Program) {
	for _, pkg := range p.Roots {
		if enabled(p, pkg) {
			for _, decl := range kinds(p, pkg) {
				p.Need(pkg, decl.Spec.Name.Name)
			}
		}
	}
}

// Generate makes the apply configurations.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	header, err := p.Header(g.Options.HeaderFile, "")
	if err != nil {
		return nil, err
	}
	external := map[string]string{}
	for _, name := range []string{"Condition", "DeleteOptions", "LabelSelector", "LabelSelectorRequirement", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "TypeMeta"} {
		external[metaPath+"."+name] = metaApplyPath
	}
	for _, text := range g.Options.External {
		name, in, ok := strings.Cut(text, "@")
		if !ok {
			return nil, fmt.Errorf("applyconfiguration: %q is not of the form package.Type@package", text)
		}
		external[name] = in
	}
	var outputs []load.Output
	for _, pkg := range p.Roots {
		if !enabled(p, pkg) {
			continue
		}
		made, err := newPackage(p, pkg, header, external).outputs()
		if err != nil {
			return nil, fmt.Errorf("applyconfiguration: package %s: %w", pkg.Path, err)
		}
		outputs = append(outputs, made...)
	}
	return outputs, nil
}

// target is what is made for one package.
type target struct {
	program        *load.Program
	pkg            *load.Package
	header         string
	group, version string
	dir            string            // below the package
	sub            string            // of the configurations, below dir
	refs           map[string]string // package of the apply configuration by "package.Type"
	kinds          []*load.TypeDecl
	structs        []*load.TypeDecl // that get an apply configuration
}

func newPackage(p *load.Program, pkg *load.Package, header string, external map[string]string) *target {
	t := &target{program: p, pkg: pkg, header: header, refs: map[string]string{}}
	t.group, t.version = crd.GroupVersion(p, pkg)
	if t.group == "" {
		p.Problemf(pkg.Files[0].Package, "apply configurations need an API group: add // +groupName=<group> above the package clause")
	}
	t.dir, t.sub = place(p, pkg)
	for name, in := range external {
		t.refs[name] = in
	}
	t.kinds = kinds(p, pkg)
	reached := map[types.Type]bool{}
	for _, kind := range t.kinds {
		if obj := pkg.Types.Scope().Lookup(kind.Spec.Name.Name); obj != nil {
			t.reach(obj.Type(), reached)
		}
	}
	for _, decl := range pkg.Decls() {
		obj := pkg.Types.Scope().Lookup(decl.Spec.Name.Name)
		if obj == nil || !reached[obj.Type()] || !tagged(decl) {
			continue
		}
		t.refs[pkg.Path+"."+obj.Name()] = path.Join(pkg.Path, t.dir, t.sub)
		t.structs = append(t.structs, decl)
	}
	slices.SortFunc(t.structs, func(a, b *load.TypeDecl) int {
		return strings.Compare(strings.ToLower(a.Spec.Name.Name), strings.ToLower(b.Spec.Name.Name))
	})
	return t
}

// tagged reports whether a type is a struct with JSON fields.
func tagged(decl *load.TypeDecl) bool {
	x, ok := decl.Spec.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(x.Fields.List, func(f *ast.Field) bool { _, ok := jsonTag(f); return ok })
}

// reach marks the types that a type is made of.
func (t *target) reach(of types.Type, seen map[types.Type]bool) {
	of = types.Unalias(of)
	if seen[of] {
		return
	}
	seen[of] = true
	switch of := of.(type) {
	case *types.Named:
		t.reach(of.Underlying(), seen)
	case *types.Pointer:
		t.reach(of.Elem(), seen)
	case *types.Slice:
		t.reach(of.Elem(), seen)
	case *types.Map:
		t.reach(of.Key(), seen)
		t.reach(of.Elem(), seen)
	case *types.Struct:
		for field := range of.Fields() {
			t.reach(field.Type(), seen)
		}
	}
}

// comments returns the lines of a type's doc comment and of the group above it.
func comments(decl *load.TypeDecl) []string {
	var lines []string
	doc := decl.Doc()
	at := decl.Decl.Pos()
	if doc != nil {
		at = doc.Pos()
	}
	fset := decl.Package.Fset()
	for _, group := range decl.File.Comments {
		if group != doc && group.End() < at && fset.Position(group.End()).Line == fset.Position(at).Line-2 {
			lines = append(lines, text(group)...)
		}
	}
	return append(lines, text(doc)...)
}

func text(group *ast.CommentGroup) []string {
	if group == nil {
		return nil
	}
	return strings.Split(strings.TrimRight(group.Text(), "\n"), "\n")
}

// prose writes comment lines without markers.
func prose(lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "+") {
			out.WriteString("// " + line + "\n")
		}
	}
	return out.String()
}

func (t *target) isKind(name string) bool {
	return slices.ContainsFunc(t.kinds, func(k *load.TypeDecl) bool { return k.Spec.Name.Name == name })
}

func (t *target) clusterWide(decl *load.TypeDecl) bool {
	return crd.ClusterScoped(t.program.TypeMarkers(decl)) || hasTag(decl, "+genclient:nonNamespaced")
}
