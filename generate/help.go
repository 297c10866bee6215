// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"go/token"
	"io"
	"strings"

	"github.com/steer-dev/steer/generate/advice"
	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/rbac"
	"github.com/steer-dev/steer/generate/webhook"
)

// CompatibleVersion is the version of controller-gen whose behaviour is matched.
const CompatibleVersion = crd.ToolVersion

// MarkerHelp prints the markers of the request's generators, or of all: 1 a line
// each, 2 with their arguments, 3 with the arguments' help, 4 as JSON.
func (r *Request) MarkerHelp(w io.Writer, level int) error {
	var defs []*markers.Definition
	for _, k := range kinds() {
		if len(r.generators) == 0 || r.has(k.name) {
			defs = append(defs, k.markers()...)
		}
	}
	return printHelp(w, markers.NewRegistry(defs...).All(), level)
}

func (r *Request) has(name string) bool {
	for _, g := range r.generators {
		if g.name == name {
			return true
		}
	}
	return false
}

// OptionHelp prints what may stand on the command line.
func OptionHelp(w io.Writer, level int) error { return printHelp(w, options().All(), level) }

func printHelp(w io.Writer, defs []*markers.Definition, level int) error {
	if level >= 4 {
		return json.NewEncoder(w).Encode(describe(defs))
	}
	var out strings.Builder
	category := "\x00"
	for _, def := range defs {
		if def.Help.Category != category {
			category = def.Help.Category
			fmt.Fprintf(&out, "\n%s\n\n", category)
		}
		fmt.Fprintf(&out, "+%-60s %-8s %s", def.Name+shape(def), def.Target, def.Help.Summary)
		if def.Help.Deprecated != "" {
			fmt.Fprintf(&out, " (deprecated: use +%s)", def.Help.Deprecated)
		}
		out.WriteByte('\n')
		if level < 2 || def.Anonymous() {
			continue
		}
		for _, arg := range def.Args {
			fmt.Fprintf(&out, "      %s=<%s>", arg.Name, &arg)
			if arg.Optional {
				out.WriteString(" (optional)")
			}
			if level >= 3 && arg.Help != "" {
				fmt.Fprintf(&out, "\n          %s", arg.Help)
			}
			out.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, strings.TrimPrefix(out.String(), "\n"))
	return err
}

// shape is the form of a marker's arguments.
func shape(def *markers.Definition) string {
	switch {
	case len(def.Args) == 0:
		return ""
	case def.Anonymous():
		return "=<" + def.Args[0].String() + ">"
	}
	var required []string
	for _, arg := range def.Args {
		if !arg.Optional {
			required = append(required, arg.Name+"=")
		}
	}
	if len(required) == 0 {
		return ":..."
	}
	return ":" + strings.Join(required, ",")
}

// The JSON form is controller-gen's: categories, each with its markers.
type (
	categoryHelp struct {
		Category string       `json:"category"`
		Markers  []markerHelp `json:"markers"`
	}
	markerHelp struct {
		Name       string         `json:"name"`
		Target     string         `json:"target"`
		Summary    string         `json:"summary"`
		Category   string         `json:"category"`
		Deprecated string         `json:"deprecatedInFavorOf,omitempty"`
		Fields     []argumentHelp `json:"fields,omitempty"`
	}
	argumentHelp struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Optional bool   `json:"optional"`
		Summary  string `json:"summary"`
	}
)

// describe groups definitions, which come sorted by category.
func describe(defs []*markers.Definition) []categoryHelp {
	all := []categoryHelp{}
	for _, def := range defs {
		h := markerHelp{Name: def.Name, Target: def.Target.String(), Summary: def.Help.Summary, Category: def.Help.Category, Deprecated: def.Help.Deprecated}
		for _, arg := range def.Args {
			h.Fields = append(h.Fields, argumentHelp{arg.Name, arg.String(), arg.Optional, arg.Help})
		}
		if n := len(all); n == 0 || all[n-1].Category != h.Category {
			all = append(all, categoryHelp{Category: h.Category})
		}
		last := &all[len(all)-1]
		last.Markers = append(last.Markers, h)
	}
	return all
}

// Explain says how the schema of a type, or of a field below it, came about: TYPE
// or TYPE.PATH, the path by names in JSON, such as CronTab.spec.replicas. In place of a
// type, "webhooks" asks which statements of defaulters and validators a marker of the
// kind, or an admission policy, could replace.
func (r *Request) Explain(ctx context.Context, what string) (string, error) {
	if err := r.complete(); err != nil {
		return "", err
	}
	resolver, err := load.NewFast(load.Build{Dir: r.Dir, Tags: r.Tags})
	if err != nil {
		return "", err
	}
	p, err := load.Load(ctx, resolver, r.Paths, methods()...)
	if err != nil {
		return "", err
	}
	if what == explainWebhooks {
		return webhookAdvice(p)
	}
	p.Collector = r.collector(nil)
	name, path, _ := strings.Cut(what, ".")
	for _, root := range p.Roots {
		for _, decl := range root.Decls() {
			if decl.Spec.Name.Name != name {
				continue
			}
			p.Need(root, name)
			if err := p.Check(false); err != nil {
				return "", err
			}
			return r.definitions().Explain(p, decl, path)
		}
	}
	return "", fmt.Errorf("no type %s in %v", name, r.Paths)
}

// Places finds the declarations of types and their fields.
type Places struct {
	program   *load.Program
	generator *crd.Generator
}

// Places reads the packages of the request.
func (r *Request) Places(ctx context.Context) (*Places, error) {
	p, err := r.sources(ctx)
	if err != nil {
		return nil, err
	}
	return &Places{program: p, generator: r.definitions()}, nil
}

// definitions is the generator of CRDs with the options of the request.
func (r *Request) definitions() *crd.Generator {
	for _, g := range r.generators {
		if given, ok := g.generator.(*crd.Generator); ok {
			return given
		}
	}
	return &crd.Generator{}
}

// Find returns where a field below a type of a package is declared, the path by names in
// JSON, such as spec.replicas; of a field that there is not, where the type that would
// have it is declared.
// ok is false if there is no such type.
func (l *Places) Find(importPath, name, path string) (at token.Position, ok bool) {
	for _, root := range l.program.Roots {
		if root.Path != importPath {
			continue
		}
		if decl := root.Decl(name); decl != nil {
			l.program.Need(root, name)
			if l.program.Check(false) != nil {
				return l.program.Fset.Position(decl.Spec.Pos()), true
			}
			return l.generator.Position(l.program, decl, path), true
		}
	}
	return token.Position{}, false
}

// explainWebhooks is what [Request.Explain] takes in place of a type, which begins with an
// upper-case letter.
const explainWebhooks = "webhooks"

// webhookAdvice says of defaulters and validators what markers could do instead.
func webhookAdvice(p *load.Program) (string, error) {
	var files []advice.File
	for _, root := range p.Roots {
		for _, f := range root.Files {
			files = append(files, advice.File{Package: root.Path, Path: f.Path, Source: f.Source})
		}
	}
	text, err := advice.Webhooks(files)
	if err == nil && text == "" {
		text = "there is no method Default, ValidateCreate, ValidateUpdate or ValidateDelete of a webhook in the packages that were read\n"
	}
	return text, err
}

// Roles returns the markers of roles in the packages, with their places, in the order of
// the sources.
func (r *Request) Roles(ctx context.Context) ([]rbac.Located, error) {
	p, err := r.sources(ctx)
	if err != nil {
		return nil, err
	}
	return rbac.Locate(p), nil
}

// Webhooks returns the markers of webhooks in the packages, as Roles does those of roles.
func (r *Request) Webhooks(ctx context.Context) ([]webhook.Located, error) {
	p, err := r.sources(ctx)
	if err != nil {
		return nil, err
	}
	return webhook.Locate(p), nil
}

// sources reads the packages, with their markers.
func (r *Request) sources(ctx context.Context) (*load.Program, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	resolver, err := load.NewFast(load.Build{Dir: r.Dir, Tags: r.Tags})
	if err != nil {
		return nil, err
	}
	p, err := load.Load(ctx, resolver, r.Paths, methods()...)
	if err != nil {
		return nil, err
	}
	p.Collector = r.collector(nil)
	return p, nil
}
