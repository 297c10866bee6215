// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client writes typed clients, listers and informers for kinds, and their
// registration with a scheme, in the layout that code-generator gives them:
//
//	pkg/client/clientset/versioned   a client for every kind, and a fake
//	pkg/client/listers               reads from an informer's cache
//	pkg/client/informers/externalversions
//
// A kind asks for them with
//
//	// +genclient
//	// +genclient:nonNamespaced
//	// +genclient:noStatus
//	// +genclient:onlyVerbs=get,list,watch
//	// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale
//
// (or is put outside namespaces by its kubebuilder:resource marker). Unlike there,
// plurals come from the same source as in the CustomResourceDefinition, and the API
// package needs nothing but AddToScheme. Where the package asks for apply
// configurations, clients can apply them.
package client

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"go/ast"
	"go/format"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/steer-dev/steer/generate/apply"
	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/plural"
)

//go:embed templates/*.tmpl
var templates embed.FS

// Options are the arguments of the client, lister and informer generators on the
// command line. All three must be given the same directory.
type Options struct {
	Dir        string `marker:",optional" help:"Where the clients go, relative to the module. Default: pkg/client."`
	HeaderFile string `marker:",optional" help:"A file to put at the top of each output, for example a licence."`
	Year       string `marker:",optional" help:"What replaces \" YEAR\" in the header."`
}

// Part is one of the outputs.
type Part string

// The parts, each a generator on the command line.
const (
	Clients   Part = "client"
	Listers   Part = "lister"
	Informers Part = "informer"
	Register  Part = "register"
)

// Generator makes one part for all roots together.
type Generator struct {
	Part    Part
	Options Options
}

// Markers are the definitions of the markers that the generators read, besides
// those of the CustomResourceDefinition.
func Markers() []*markers.Definition {
	help := func(summary string) markers.Help { return markers.Help{Category: "client", Summary: summary} }
	return append([]*markers.Definition{
		markers.Define[struct{}]("genclient", markers.Type, help("The kind gets a client.")),
		markers.Define[struct{}]("genclient:nonNamespaced", markers.Type, help("The kind is outside namespaces.")),
		markers.Define[struct{}]("genclient:noStatus", markers.Type, help("The client has no UpdateStatus.")),
		markers.Define[struct{}]("genclient:noVerbs", markers.Type, help("The client has no methods but those written by hand.")),
		markers.Define[struct{}]("genclient:readonly", markers.Type, help("The client has Get, List and Watch.")),
		markers.Define[verbs]("genclient:onlyVerbs", markers.Type, help("The client has these methods only, parted by commas.")),
		markers.Define[verbs]("genclient:skipVerbs", markers.Type, help("The client lacks these methods, parted by commas.")),
		markers.Define[method]("genclient:method", markers.Type, help("The client has a further method: Name,verb=,subresource=,input=,result=.")),
		markers.Define[string]("groupGoName", markers.Package, help("The Go name of the API group. Default: its first word.")),
	}, apply.Markers()...)
}

// Wanted reports whether any kind in the roots asks for a client.
func Wanted(p *load.Program) bool {
	return slices.ContainsFunc(crd.Kinds(p), func(k crd.Kind) bool { return p.TypeMarkers(k.TypeDecl).Has("genclient") })
}

// Need asks for the types of kinds that are declared after others, whose fields are
// not in sight. Otherwise names and markers suffice.
func (g *Generator) Need(p *load.Program) {
	for _, k := range crd.Kinds(p) {
		if _, isStruct := k.Spec.Type.(*ast.StructType); !isStruct && p.TypeMarkers(k.TypeDecl).Has("genclient") {
			p.Need(k.Package, k.Spec.Name.Name)
		}
	}
}

// Generate makes the part.
func (g *Generator) Generate(p *load.Program) ([]load.Output, error) {
	header, err := p.Header(g.Options.HeaderFile, g.Options.Year)
	if err != nil {
		return nil, err
	}
	all, base, err := g.collect(p)
	if err != nil || len(all.Groups) == 0 {
		return nil, err
	}
	w := &writer{header: header, base: base}
	switch g.Part {
	case Clients:
		w.clients(all)
	case Listers:
		w.listers(all)
	case Informers:
		w.informers(all)
	case Register:
		w.register(all)
	}
	return w.outputs, w.err
}

// collect finds the kinds that ask for clients, and where the clients go.
func (g *Generator) collect(p *load.Program) (*set, string, error) {
	all := &set{}
	if len(p.Roots) == 0 {
		return all, "", nil
	}
	top, module, err := moduleOf(p.Roots[0].Dir)
	if err != nil {
		return nil, "", err
	}
	dir := cmp.Or(g.Options.Dir, "pkg/client")
	all.Package = path.Join(module.Module.Mod.Path, filepath.ToSlash(dir))
	all.Typed = hasTypedInformers(module)
	for _, k := range crd.Kinds(p) {
		markerSet := p.TypeMarkers(k.TypeDecl)
		if !markerSet.Has("genclient") {
			continue
		}
		if k.Group == "" {
			p.Problemf(k.Spec.Pos(), "kind %s has no API group, which its client needs: add // +groupName=GROUP above the package clause", k.Spec.Name.Name)
			continue
		}
		can := verbsOf(markerSet)
		if markerSet.Has("genclient:noStatus") || !hasStatus(k.TypeDecl) {
			delete(can, "updateStatus")
			delete(can, "applyStatus")
		}
		configured := apply.Configured(p, k.TypeDecl)
		if configured == "" {
			delete(can, "apply")
			delete(can, "applyStatus")
		}
		byHand := markerSet.Has("genclient:noVerbs") // such kinds have a lister all the same
		if g.Part == Listers && !byHand && !(can["list"] && can["get"]) || g.Part == Informers && !(can["list"] && can["get"] && can["watch"]) {
			continue
		}
		name := k.Spec.Name.Name
		one := kind{
			Name:       name,
			Plural:     crd.ResourceName(name, markerSet),
			PluralGo:   plural.Of(name),
			Namespaced: !markerSet.Has("genclient:nonNamespaced") && !crd.ClusterScoped(markerSet),
			List:       k.Package.Decl(name+"List") != nil,
			Can:        can,
			Apply:      configured,
		}
		if !byHand {
			one.Calls, one.Imports = calls(name, configured, markers.All[method](markerSet, "genclient:method"))
		}
		v := all.version(p, k)
		v.Kinds = append(v.Kinds, one)
	}
	for _, group := range all.Groups {
		for _, v := range group.Versions {
			slices.SortFunc(v.Kinds, func(a, b kind) int { return strings.Compare(a.Name, b.Name) })
			for _, k := range v.Kinds {
				if !k.List && k.Lists() {
					p.Problemf(v.pkg.Files[0].Package, "kind %s has no type %sList beside it, which its client needs", k.Name, k.Name)
				}
			}
		}
	}
	return all, filepath.Join(top, dir), nil
}

// hasStatus reports whether a kind has a field of that name.
func hasStatus(decl *load.TypeDecl) bool {
	if s, ok := decl.Spec.Type.(*ast.StructType); ok {
		return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
			return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == "Status" })
		})
	}
	t := decl.Package.Info.TypeOf(decl.Spec.Name)
	if t == nil {
		return false
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for field := range s.Fields() {
		if field.Name() == "Status" {
			return true
		}
	}
	return false
}

func (s *set) version(p *load.Program, k crd.Kind) *version {
	i := slices.IndexFunc(s.Groups, func(g *group) bool { return g.Name == k.Group })
	if i < 0 {
		first, _, _ := strings.Cut(k.Group, ".")
		name, ok := markers.First[string](p.PackageMarkers(k.Package), "groupGoName")
		if !ok {
			name = upperFirst(first)
		}
		dir := strings.ToLower(path.Base(path.Dir(k.Package.Path)))
		if slices.ContainsFunc(s.Groups, func(g *group) bool { return g.Dir == dir }) {
			dir = strings.ToLower(first) // two groups in directories of one name
		}
		s.Groups = append(s.Groups, &group{Name: k.Group, Go: name, Dir: dir})
		i = len(s.Groups) - 1
	}
	g := s.Groups[i]
	for _, v := range g.Versions {
		if v.pkg == k.Package {
			return v
		}
	}
	v := &version{Set: s, Group: g, Name: k.Version, Go: upperFirst(k.Version), Path: k.Package.Path, pkg: k.Package}
	g.Versions = append(g.Versions, v)
	return v
}

func upperFirst(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// moduleOf finds the module that a directory belongs to.
func moduleOf(dir string) (top string, module *modfile.File, err error) {
	for top = dir; ; top = filepath.Dir(top) {
		name := filepath.Join(top, "go.mod")
		if text, err := os.ReadFile(name); err == nil {
			module, err = modfile.Parse(name, text, nil)
			if err == nil && module.Module == nil {
				err = fmt.Errorf("%s names no module, so clients have no import path", name)
			}
			return top, module, err
		}
		if filepath.Dir(top) == top {
			return "", nil, fmt.Errorf("%s is in no module, so its clients have no import path", dir)
		}
	}
}

// hasTypedInformers reports whether the client-go of a module has typed informers, which v0.37 is
// the first to have. A module that does not require it yet will require the newest.
func hasTypedInformers(module *modfile.File) bool {
	const clientGo, first = "k8s.io/client-go", "v0.37.0-0"
	for _, r := range module.Replace {
		if r.Old.Path == clientGo && r.New.Version != "" {
			return semver.Compare(r.New.Version, first) >= 0
		}
	}
	for _, r := range module.Require {
		if r.Mod.Path == clientGo {
			return semver.Compare(r.Mod.Version, first) >= 0
		}
	}
	return true
}

// writer makes files of templates; its first error sticks.
type writer struct {
	header, base string
	outputs      []load.Output
	err          error
}

func (w *writer) file(name, from, tool string, about data) {
	w.at(filepath.Join(w.base, name), nil, from, tool, about)
}

func (w *writer) at(name string, pkg *load.Package, from, tool string, about data) {
	if w.err != nil {
		return
	}
	texts := map[string]string{}
	for _, of := range []string{from, "methods"} {
		text, err := templates.ReadFile("templates/" + of + ".tmpl")
		if err != nil {
			w.err = err
			return
		}
		texts[of] = string(text)
	}
	var out bytes.Buffer
	if pkg != nil { // what is beside the types must not count as written by hand
		out.WriteString("//go:build !ignore_autogenerated\n\n")
	}
	fmt.Fprintf(&out, "%s\n// Code generated by %s. DO NOT EDIT.\n\n", w.header, tool)
	if err := fill(&out, from, texts, about); err != nil {
		w.err = fmt.Errorf("%s: %w", name, err)
		return
	}
	code, err := format.Source(out.Bytes())
	if err != nil {
		w.err = fmt.Errorf("%s: %w", name, err)
	}
	w.outputs = append(w.outputs, load.Output{Package: pkg, Name: name, Data: code})
}

func (w *writer) clients(all *set) {
	const root = "clientset/versioned/"
	w.file(root+"clientset.go", "clientset", "client-gen", all)
	w.file(root+"scheme/register.go", "scheme", "client-gen", all)
	w.file(root+"fake/clientset_generated.go", "fakeset", "client-gen", all)
	all.each(func(v *version) {
		dir := root + "typed/" + v.Group.Dir + "/" + v.Name + "/"
		w.file(dir+v.Group.Dir+"_client.go", "group", "client-gen", v)
		w.file(dir+"fake/fake_"+v.Group.Dir+"_client.go", "fakegroup", "client-gen", v)
		for _, k := range v.Kinds {
			name := strings.ToLower(k.Name) + ".go"
			w.file(dir+name, "type", "client-gen", one{v, k})
			w.file(dir+"fake/fake_"+name, "faketype", "client-gen", one{v, k})
		}
	})
}

func (w *writer) listers(all *set) {
	all.each(func(v *version) {
		for _, k := range v.Kinds {
			w.file("listers/"+v.Group.Dir+"/"+v.Name+"/"+strings.ToLower(k.Name)+".go", "lister", "lister-gen", one{v, k})
		}
	})
}

func (w *writer) informers(all *set) {
	const root = "informers/externalversions/"
	w.file(root+"factory.go", "factory", "informer-gen", all)
	w.file(root+"generic.go", "generic", "informer-gen", all)
	w.file(root+"internalinterfaces/factory_interfaces.go", "internal", "informer-gen", all)
	for _, g := range all.Groups {
		w.file(root+g.Dir+"/interface.go", "informergroup", "informer-gen", grouped{all, g})
	}
	all.each(func(v *version) {
		dir := root + v.Group.Dir + "/" + v.Name + "/"
		w.file(dir+"interface.go", "informerversion", "informer-gen", v)
		for _, k := range v.Kinds {
			w.file(dir+strings.ToLower(k.Name)+".go", "informer", "informer-gen", one{v, k})
		}
	})
}

// register makes the registration of packages that do not have their own.
func (w *writer) register(all *set) {
	all.each(func(v *version) {
		if !declares(v.pkg, "AddToScheme") {
			w.at("zz_generated.register.go", v.pkg, "register", "register-gen", v)
		}
	})
}

func declares(pkg *load.Package, name string) bool {
	for _, file := range pkg.Files {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok {
						for _, ident := range value.Names {
							if ident.Name == name {
								return true
							}
						}
					}
				}
			}
		}
	}
	return false
}

func (s *set) each(do func(*version)) {
	for _, g := range s.Groups {
		for _, v := range g.Versions {
			do(v)
		}
	}
}
