// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package object writes DeepCopy, DeepCopyInto and DeepCopyObject methods.
//
// A package or type asks for them:
//
//	// +kubebuilder:object:generate=true   (package or type)
//	// +kubebuilder:object:root=true       (type: DeepCopyObject too)
//
// or with deepcopy-gen's older names. A method that exists by hand is left alone
// and called; the sources are loaded without earlier generated files, so what is
// found was written by hand. Generic types have no methods made for them: their
// instances are copied by functions in the packages that use them.
package object

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/types"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
)

// Options are the arguments of the generator on the command line.
type Options struct {
	HeaderFile string `marker:",optional" help:"A file to put at the top of the output, for example a licence."`
	Year       string `marker:",optional" help:"What replaces \" YEAR\" in the header."`
}

// Generator makes one file for each root with types that ask for methods.
type Generator struct{ Options Options }

const (
	generateMarker   = "kubebuilder:object:generate"
	rootMarker       = "kubebuilder:object:root"
	legacyMarker     = "k8s:deepcopy-gen"
	interfacesMarker = "k8s:deepcopy-gen:interfaces"

	runtimePath   = "k8s.io/apimachinery/pkg/runtime"
	runtimeObject = runtimePath + ".Object"
)

// Markers are the definitions of the markers that the generator reads.
func Markers() []*markers.Definition {
	help := func(summary, instead string) markers.Help {
		return markers.Help{Category: "object", Summary: summary, Deprecated: instead}
	}
	return []*markers.Definition{
		markers.Define[bool](generateMarker, markers.Package, help("Types of the package get deep-copy methods.", "")),
		markers.Define[bool](generateMarker, markers.Type, help("The type gets deep-copy methods, or none, whatever its package says.", "")),
		markers.Define[bool](rootMarker, markers.Type, help("The type is a runtime.Object: it gets DeepCopyObject too.", "")),
		markers.Define[markers.Raw](legacyMarker, markers.Package, help("With \"package\": types of the package get deep-copy methods.", generateMarker)),
		markers.Define[markers.Raw](legacyMarker, markers.Type, help("With \"true\" or \"false\": the type gets deep-copy methods, or none.", generateMarker)),
		markers.Define[string](interfacesMarker, markers.Type, help("With \""+runtimeObject+"\": the type gets DeepCopyObject too.", rootMarker)),
	}
}

// Wanted reports whether any type in the roots asks for methods.
func Wanted(p *load.Program) bool {
	return slices.ContainsFunc(p.Roots, func(pkg *load.Package) bool { return len(enabled(p, pkg)) > 0 })
}

// enabled returns the exported types of a package that ask for methods.
func enabled(p *load.Program, pkg *load.Package) []*load.TypeDecl {
	all := packageEnabled(p.PackageMarkers(pkg))
	var decls []*load.TypeDecl
	for _, decl := range pkg.Decls() {
		// Whether the fields of a generic type need copying depends on its
		// arguments: its instances are copied where they are used.
		generic := decl.Spec.TypeParams != nil
		if !generic && ast.IsExported(decl.Spec.Name.Name) && typeEnabled(all, p.TypeMarkers(decl)) {
			decls = append(decls, decl)
		}
	}
	return decls
}

func packageEnabled(set markers.Set) bool {
	if on, ok := markers.First[bool](set, generateMarker); ok {
		return on
	}
	legacy, _ := markers.First[markers.Raw](set, legacyMarker)
	kind, _, _ := strings.Cut(string(legacy), ",")
	return kind == "package"
}

func typeEnabled(all bool, set markers.Set) bool {
	if on, ok := markers.First[bool](set, generateMarker); ok {
		return on
	}
	if legacy, ok := markers.First[markers.Raw](set, legacyMarker); ok {
		return legacy == "true"
	}
	return all || isRoot(set)
}

func isRoot(set markers.Set) bool {
	if on, ok := markers.First[bool](set, rootMarker); ok {
		return on
	}
	return slices.Contains(markers.All[string](set, interfacesMarker), runtimeObject)
}

// Need asks the program for the types.
func (g *Generator) Need(p *load.Program) {
	for _, pkg := range p.Roots {
		var names []string
		for _, decl := range enabled(p, pkg) {
			names = append(names, decl.Spec.Name.Name)
		}
		p.Need(pkg, names...)
	}
}

// Generate makes the methods.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	header, err := p.Header(g.Options.HeaderFile, g.Options.Year)
	if err != nil {
		return nil, err
	}
	var outputs []load.Output
	for _, pkg := range p.Roots {
		code := generate(p, pkg, header)
		if code != nil {
			outputs = append(outputs, load.Output{Package: pkg, Name: "zz_generated.deepcopy.go", Data: code})
		}
	}
	return outputs, nil
}

// generate writes the file of a package, nil if no type needs methods. Imports get
// their names in source order, types are written in the order of their names.
func generate(p *load.Program, pkg *load.Package, header string) []byte {
	imports, instances := newImports(pkg), newInstances()
	methods := map[string][]byte{}
	var names []string
	for _, decl := range enabled(p, pkg) {
		w := &writer{program: p, pkg: pkg, imports: imports, instances: instances, at: decl.Spec.Pos()}
		t := pkg.Info.TypeOf(decl.Spec.Name)
		if t == nil || !w.copied(t) {
			continue
		}
		w.methods(decl.Spec.Name.Name, t, isRoot(p.TypeMarkers(decl)))
		if w.out.Len() > 0 {
			name := decl.Spec.Name.Name
			methods[name] = w.out.Bytes()
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, "//go:build !ignore_autogenerated\n\n%s\n\n// Code generated by controller-gen. DO NOT EDIT.\n\npackage %s\n\nimport (\n%s\n)\n\n",
		header, pkg.Name, strings.Join(imports.specs(), "\n"))
	slices.Sort(names)
	for _, name := range names {
		file.Write(methods[name])
	}
	file.Write(instances.all())
	code, err := format.Source(file.Bytes())
	if err != nil {
		p.Problemf(pkg.Files[0].Package, "deep-copy methods of package %s: %v", pkg.Path, err)
		return nil
	}
	return code
}

// copied reports whether a type can have methods at all: basic types are copied by
// assignment, pointer types cannot be receivers, aliases have the methods of what
// they stand for.
func (w *writer) copied(t types.Type) bool {
	named, ok := t.(*types.Named)
	if !ok {
		return false
	}
	switch under := named.Underlying().(type) {
	case *types.Pointer:
		return w.hasAny(under)
	case *types.Basic:
		return w.hasAny(t)
	}
	return true
}
