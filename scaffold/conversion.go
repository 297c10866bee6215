// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/project"
)

// conversionMarker makes the generator write that versions are converted by a webhook.
const conversionMarker = "+kubebuilder:conversion:webhook"

func (pl places) conversion() string { return path.Join(pl.apiDir(), pl.lower()+"_conversion.go") }

func (pl places) conversionTest() string {
	return path.Join(pl.apiDir(), pl.lower()+"_conversion_test.go")
}

// spokes are the versions that are to be converted to and from the version of the options,
// and are not yet.
func (o *WebhookOptions) spokes(p *project.Project, hub project.Resource) ([]project.Resource, error) {
	var others, fresh []project.Resource
	for _, r := range p.Resources {
		if r.API == nil || r.Group != hub.Group || r.Kind != hub.Kind || r.Version == hub.Version {
			continue
		}
		if r.Webhooks != nil && r.Webhooks.Conversion {
			return nil, project.Usagef("the versions of %s convert to and from %s already: give --version %s", hub.Kind, r.Version, r.Version)
		}
		others = append(others, r)
	}
	for _, version := range o.Spokes {
		if !slices.ContainsFunc(others, func(r project.Resource) bool { return r.Version == version }) {
			return nil, project.Usagef("--spoke %s is no other version of %s: make it first, with steer create api", version, o.GVK)
		}
	}
	for _, r := range others {
		wanted := len(o.Spokes) == 0 || slices.Contains(o.Spokes, r.Version)
		if wanted && (hub.Webhooks == nil || !slices.Contains(hub.Webhooks.Spoke, r.Version)) {
			fresh = append(fresh, r)
		}
	}
	switch {
	case len(others) == 0:
		return nil, project.Usagef("%s has one version, and nothing to convert: make another one first, with steer create api", o.GVK)
	case len(fresh) == 0:
		return nil, project.Usagef("%s is converted to and from these versions already", o.GVK)
	}
	return fresh, nil
}

// addConversion makes a version of a kind the hub, if it is not, and others its spokes.
func (c *command) addConversion(p *project.Project, hub project.Resource, spokes []project.Resource) error {
	at := placesOf(p, hub)
	if text, err := c.read(at.conversion()); err != nil {
		return err
	} else if text == nil {
		if err := c.create(at.conversion(), "hub.go", at.values()); err != nil {
			return err
		}
		if err := c.create(at.conversionTest(), "conversion_test.go", at.values()); err != nil {
			return err
		}
	}
	err := c.edit(at.types(), func(s *source) error {
		found, err := s.markType(hub.Kind, conversionMarker)
		if err == nil && !found {
			c.note("add // %s to %s of %s", conversionMarker, hub.Kind, hub.Version)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, spoke := range spokes {
		if err := c.addSpoke(p, hub, spoke); err != nil {
			return err
		}
	}
	return c.editIfThere(at.controllerTest(), func(s *source) error {
		for _, r := range append([]project.Resource{hub}, spokes...) {
			found, err := s.addElement("steer.Scheme", r.Alias()+".AddToScheme")
			if err == nil && found {
				err = s.importAs(r.Alias(), r.Path, p.Repo)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addSpoke adds the methods of a version that is not the hub, and the version to the test.
func (c *command) addSpoke(p *project.Project, hub, spoke project.Resource) error {
	at := placesOf(p, spoke)
	hubTypes, spokeTypes, err := c.typesOf(p, hub, spoke)
	if err != nil {
		return err
	}
	v := at.values()
	v["hubalias"], v["hubpath"], v["hubversion"] = hub.Alias(), hub.Path, hub.Version
	v["to"] = assignments(spoke.Kind, spokeTypes, hubTypes, spoke.Version, hub.Version)
	v["from"] = assignments(spoke.Kind, hubTypes, spokeTypes, hub.Version, spoke.Version)
	if err := c.create(at.conversion(), "spoke.go", v); err != nil {
		return err
	}
	test := placesOf(p, hub).conversionTest()
	return c.editIfThere(test, func(s *source) error {
		call := s.call(s.file, "client.NewScheme")
		add := spoke.Alias() + ".AddToScheme"
		if call == nil {
			c.note("%s: add %s to the scheme", test, add)
			return nil
		}
		if err := s.appendTo(call.Args, call.Lparen, call.Rparen, add); err != nil {
			return err
		}
		return s.importAs(spoke.Alias(), spoke.Path, p.Repo)
	})
}

// typesOf reads the files with the types of two versions.
func (c *command) typesOf(p *project.Project, hub, spoke project.Resource) (a, b *source, err error) {
	for i, r := range []project.Resource{hub, spoke} {
		name := placesOf(p, r).types()
		text, err := c.read(name)
		if err != nil {
			return nil, nil, err
		}
		if text == nil {
			return nil, nil, project.Usagef("there is no %s, which should have the type %s", name, r.Kind)
		}
		s, err := parseSource(name, text)
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			a = s
		} else {
			b = s
		}
	}
	return a, b, nil
}

// assignments are the lines that copy the fields which two versions of a kind have in
// common, and a comment for each of the others of the first.
func assignments(kind string, from, to *source, fromVersion, toVersion string) string {
	var copied, left []string
	for _, part := range []string{"Spec", "Status"} {
		has := to.fields(kind + part)
		for _, f := range from.fields(kind + part) {
			name := part + "." + f.name
			i := slices.IndexFunc(has, func(other structField) bool { return other.name == f.name })
			switch {
			case i < 0:
				left = append(left, fmt.Sprintf("\t// %s has no %s: convert it here, or keep it in an annotation.\n", toVersion, name))
			case has[i] != f || f.local:
				left = append(left, fmt.Sprintf("\t// %s has types of their own in %s and %s: convert it here.\n", name, fromVersion, toVersion))
			default:
				copied = append(copied, "\tdst."+name+" = src."+name+"\n")
			}
		}
	}
	return strings.Join(append(copied, left...), "")
}

// structField is a field of a struct type.
type structField struct {
	name, typ string
	// local: its type is, or has a part, of the same package.
	local bool
}

// fields are those of a struct type of the file, without embedded ones; none if there is
// no such type.
func (s *source) fields(typ string) (out []structField) {
	for _, decl := range s.file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.TypeSpec)
			body, ok := spec.Type.(*ast.StructType)
			if !ok || spec.Name.Name != typ {
				continue
			}
			for _, f := range body.Fields.List {
				for _, name := range f.Names {
					out = append(out, structField{name.Name, s.src(f.Type), isLocal(f.Type)})
				}
			}
		}
	}
	return out
}

// isLocal reports whether a type has a name without a package that is not one of Go's own.
func isLocal(typ ast.Expr) (local bool) {
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			local = local || ast.IsExported(n.Name)
		}
		return true
	})
	return local
}

// removeConversion removes the methods of a hub and its spokes.
func (c *command) removeConversion(p *project.Project, hub project.Resource, spokes []string) error {
	at := placesOf(p, hub)
	c.remove(at.conversion(), at.conversionTest())
	if err := c.editIfThere(at.types(), func(s *source) error { return s.unmarkType(hub.Kind, conversionMarker) }); err != nil {
		return err
	}
	versions := []project.Resource{hub}
	for _, r := range p.Resources {
		if r.Group == hub.Group && r.Kind == hub.Kind && slices.Contains(spokes, r.Version) {
			c.remove(placesOf(p, r).conversion())
			versions = append(versions, r)
		}
	}
	return c.editIfThere(at.controllerTest(), func(s *source) error {
		for _, r := range versions {
			if r.Controller {
				continue
			}
			if _, err := s.removeElement("steer.Scheme", r.Alias()+".AddToScheme"); err != nil {
				return err
			}
			if err := s.dropImport(r.Alias(), r.Path); err != nil {
				return err
			}
		}
		return nil
	})
}

// editIfThere changes a Go file in place, if there is one.
func (c *command) editIfThere(name string, change func(s *source) error) error {
	if text, err := c.read(name); err != nil || text == nil {
		return err
	}
	return c.edit(name, change)
}
