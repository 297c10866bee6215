// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protobuf writes the protobuf form of Go types, as Kubernetes' own types have it:
// methods that client-go and package apiserver/custom look for, and a generated.proto.
//
// A package or type asks for it:
//
//	// +k8s:protobuf-gen=package   (package)
//	// +protobuf=true              (type; false: the type has none)
//
// Structs of the same package that such a type holds get it, too. The number of a field is
// that of its tag `protobuf:"bytes,1,opt,name=spec"`, else the one that it has in
// generated.proto, which is committed: a field keeps its number for as long as it exists, a
// new field gets the next one, and the number of a field that is removed is reserved.
package protobuf

import (
	"errors"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
)

// Options are the arguments of the generator on the command line.
type Options struct {
	HeaderFile string `marker:",optional" help:"A file to put at the top of the outputs, for example a licence."`
	Year       string `marker:",optional" help:"What replaces \" YEAR\" in the header."`
}

// Generator makes two files for each root with types that ask for a protobuf form.
type Generator struct{ Options Options }

// The names of the outputs.
const (
	CodeFile  = "zz_generated.protobuf.go"
	protoFile = "generated.proto"
	gogoFile  = "generated.pb.go" // of go-to-protobuf
)

// Tool is what the outputs name as their author.
const Tool = "steer generate protobuf"

const (
	packageMarker = "k8s:protobuf-gen"
	typeMarker    = "protobuf"
)

// Markers are the definitions of the markers that the generator reads.
func Markers() []*markers.Definition {
	help := func(summary string) markers.Help { return markers.Help{Category: "protobuf", Summary: summary} }
	return []*markers.Definition{
		markers.Define[markers.Raw](packageMarker, markers.Package, help("With \"package\": structs of the package get a protobuf form.")),
		markers.Define[bool](typeMarker, markers.Type, help("The struct gets a protobuf form, or none, whatever its package says.")),
	}
}

// Wanted reports whether any type in the roots asks for a protobuf form, outside of packages
// that have it from go-to-protobuf.
func Wanted(p *load.Program) bool {
	return slices.ContainsFunc(p.Roots, func(pkg *load.Package) bool { return len(enabled(p, pkg)) > 0 && !has(pkg, gogoFile) })
}

// has reports whether there is a file in the folder of a package.
func has(pkg *load.Package, name string) bool {
	_, err := os.Stat(filepath.Join(pkg.Dir, name))
	return err == nil
}

// enabled returns the exported types of a package that ask for a protobuf form.
func enabled(p *load.Program, pkg *load.Package) []*load.TypeDecl {
	form, _ := markers.First[markers.Raw](p.PackageMarkers(pkg), packageMarker)
	var decls []*load.TypeDecl
	for _, decl := range pkg.Decls() {
		on, marked := markers.First[bool](p.TypeMarkers(decl), typeMarker)
		if !marked {
			on = form == "package" && decl.Spec.TypeParams == nil && ast.IsExported(decl.Spec.Name.Name)
		}
		if on {
			decls = append(decls, decl)
		}
	}
	return decls
}

// excluded reports whether a type is marked as one without a protobuf form.
func excluded(p *load.Program, decl *load.TypeDecl) bool {
	on, marked := markers.First[bool](p.TypeMarkers(decl), typeMarker)
	return marked && !on
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

// Generate makes the outputs.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	header, err := p.Header(g.Options.HeaderFile, g.Options.Year)
	if err != nil {
		return nil, err
	}
	b := &builder{program: p, protos: map[*load.Package]*proto{}, closures: map[*load.Package][]string{}}
	var outputs []load.Output
	for _, pkg := range p.Roots {
		names := b.closure(pkg)
		if len(names) == 0 {
			continue
		}
		switch at := pkg.Files[0].Package; {
		case has(pkg, gogoFile):
			p.Problemf(at, "package %s has %s of go-to-protobuf: delete it, and the methods are made by steer, with the numbers of %s", pkg.Path, gogoFile, protoFile)
			continue
		case has(pkg, CodeFile) && !has(pkg, protoFile):
			p.Problemf(at, "package %s has %s and no %s, which has the numbers of the fields: restore it, or delete both if nothing uses the numbers", pkg.Path, CodeFile, protoFile)
			continue
		}
		before, err := b.proto(pkg)
		if err != nil {
			return nil, err
		}
		messages := make([]*message, 0, len(names))
		for _, name := range names {
			m := b.message(pkg, name)
			b.number(m, before.messages[name])
			messages = append(messages, m)
		}
		outputs = append(outputs,
			load.Output{Package: pkg, Name: CodeFile, Data: code(p, pkg, header, messages)},
			load.Output{Package: pkg, Name: protoFile, Data: text(pkg, header, messages)})
	}
	return outputs, nil
}

// builder makes messages of types.
type builder struct {
	program *load.Program
	protos  map[*load.Package]*proto
	// closures are the names of the types of roots that get a protobuf form.
	closures map[*load.Package][]string
}

// proto returns what the generated.proto of a package declares; nothing if there is none.
func (b *builder) proto(pkg *load.Package) (*proto, error) {
	if known := b.protos[pkg]; known != nil {
		return known, nil
	}
	file := filepath.Join(pkg.Dir, protoFile)
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	read := parse
	if !pkg.Root {
		read = skim
	}
	declared, err := read(file, string(content))
	if err == nil {
		b.protos[pkg] = declared
	}
	return declared, err
}

// closure returns the names of the types of a root that get a protobuf form: those that ask
// for it, and the structs of the package that these hold.
func (b *builder) closure(pkg *load.Package) []string {
	if names, known := b.closures[pkg]; known {
		return names
	}
	var names []string
	var add func(t types.Type)
	add = func(t types.Type) {
		switch t := types.Unalias(t).(type) {
		case *types.Pointer:
			add(t.Elem())
		case *types.Slice:
			add(t.Elem())
		case *types.Map:
			add(t.Elem())
		case *types.Named:
			fields, isStruct := t.Underlying().(*types.Struct)
			name := t.Obj().Name()
			switch {
			case !isStruct:
				add(t.Underlying())
				return
			case t.Obj().Pkg() != pkg.Types || t.TypeArgs().Len() > 0 || slices.Contains(names, name):
				return
			}
			if decl := pkg.Decl(name); decl == nil || excluded(b.program, decl) {
				return
			}
			names = append(names, name)
			for field := range fields.Fields() {
				if travels(field, fields) {
					add(field.Type())
				}
			}
		}
	}
	for _, decl := range enabled(b.program, pkg) {
		t := pkg.Info.TypeOf(decl.Spec.Name)
		if t == nil {
			continue
		}
		_, isStruct := t.Underlying().(*types.Struct)
		_, marked := markers.First[bool](b.program.TypeMarkers(decl), typeMarker)
		switch {
		case decl.Spec.TypeParams != nil || marked && (!isStruct || decl.Spec.Assign.IsValid()):
			b.program.Problemf(decl.Spec.Pos(), "+protobuf=true is for structs without type parameters: mark the structs that hold a %s", decl.Spec.Name.Name)
		case isStruct:
			add(t)
		}
	}
	slices.Sort(names)
	b.closures[pkg] = names
	return names
}

// safe returns the protobuf package of an import path, as Kubernetes names it.
func safe(path string) string {
	parts := strings.Split(strings.NewReplacer("/", ".", "-", "_").Replace(path), ".")
	for i, part := range parts {
		parts[i] = identifier(part)
	}
	return strings.Join(parts, ".")
}

// identifier replaces what an identifier of protobuf may not have.
func identifier(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}
