// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/internal/gofile"
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
	at := c.placesOf(p, hub)
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
	err := c.edit(at.types(), func(s *gofile.File) error {
		found, err := s.MarkType(hub.Kind, conversionMarker)
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
	return c.editIfThere(at.controllerTest(), func(s *gofile.File) error {
		for _, r := range append([]project.Resource{hub}, spokes...) {
			found, err := s.AddElement("steer.Scheme", r.Alias()+".AddToScheme")
			if err == nil && found {
				err = s.ImportAs(r.Alias(), r.Path, p.Repo)
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
	at := c.placesOf(p, spoke)
	hubTypes, spokeTypes, err := c.typesOf(p, hub, spoke)
	if err != nil {
		return err
	}
	v := at.values()
	v["hubalias"], v["hubpath"], v["hubversion"] = hub.Alias(), hub.Path, hub.Version
	v["to"] = assignments(spoke.Kind, spokeTypes, hubTypes, spoke.Version, hub.Version, hub.Alias()+".")
	v["from"] = assignments(spoke.Kind, hubTypes, spokeTypes, hub.Version, spoke.Version, "")
	if err := c.create(at.conversion(), "spoke.go", v); err != nil {
		return err
	}
	test := c.placesOf(p, hub).conversionTest()
	return c.editIfThere(test, func(s *gofile.File) error {
		call := s.Call(s.Syntax(), "client.NewScheme")
		add := spoke.Alias() + ".AddToScheme"
		if call == nil {
			c.note("%s: add %s to the scheme", test, add)
			return nil
		}
		if err := s.AppendTo(call.Args, call.Lparen, call.Rparen, add); err != nil {
			return err
		}
		return s.ImportAs(spoke.Alias(), spoke.Path, p.Repo)
	})
}

// typesOf reads the packages of two versions.
func (c *command) typesOf(p *project.Project, hub, spoke project.Resource) (a, b gofile.Package, err error) {
	for i, r := range []project.Resource{hub, spoke} {
		dir := c.placesOf(p, r).apiDir()
		files, err := c.goFiles(dir)
		if err != nil {
			return nil, nil, err
		}
		if !files.Declares(r.Kind) {
			return nil, nil, project.Usagef("there is no type %s in %s", r.Kind, dir)
		}
		if i == 0 {
			a = files
		} else {
			b = files
		}
	}
	return a, b, nil
}

// assignments are the lines that copy the fields which two versions of a kind have in
// common, and a comment for each of the others of the first. toPackage is in front of the
// types of the second.
func assignments(kind string, from, to gofile.Package, fromVersion, toVersion, toPackage string) string {
	var copied, left []string
	for _, part := range []string{"Spec", "Status"} {
		has := to.Fields(kind + part)
		for _, f := range from.Fields(kind + part) {
			name := part + "." + f.Name
			i := slices.IndexFunc(has, func(other gofile.Field) bool { return other.Name == f.Name })
			basic := from.Basic(f.Type)
			switch {
			case i < 0:
				left = append(left, fmt.Sprintf("\t// %s has no %s: convert it here, or keep it in an annotation.\n", toVersion, name))
			case has[i] == f && !f.Local:
				copied = append(copied, "\tdst."+name+" = src."+name+"\n")
			case has[i] == f && basic != "" && basic == to.Basic(f.Type):
				copied = append(copied, "\tdst."+name+" = "+toPackage+f.Type+"(src."+name+")\n")
			default:
				left = append(left, fmt.Sprintf("\t// %s is a %s in %s and a %s in %s: convert it here.\n", name, f.Type, fromVersion, has[i].Type, toVersion))
			}
		}
	}
	return strings.Join(append(copied, left...), "")
}

// removeConversion removes the methods of a hub and its spokes.
func (c *command) removeConversion(p *project.Project, hub project.Resource, spokes []string) error {
	at := c.placesOf(p, hub)
	c.remove(at.conversion(), at.conversionTest())
	if err := c.editIfThere(at.types(), func(s *gofile.File) error { return s.UnmarkType(hub.Kind, conversionMarker) }); err != nil {
		return err
	}
	for _, r := range p.Resources {
		if r.Group == hub.Group && r.Kind == hub.Kind && slices.Contains(spokes, r.Version) {
			c.remove(c.placesOf(p, r).conversion())
		}
	}
	return nil
}

// dropTestSchemes takes the versions of a kind that have neither a controller nor webhooks
// nor conversions out of the scheme of its controller's test.
func (c *command) dropTestSchemes(p *project.Project, kind project.Resource) error {
	return c.editIfThere(c.placesOf(p, kind).controllerTest(), func(s *gofile.File) error {
		for _, r := range p.Resources {
			if r.Group != kind.Group || r.Kind != kind.Kind || r.Controller || r.Webhooks != nil || p.HubOf(r) >= 0 {
				continue
			}
			if _, err := s.RemoveElement("steer.Scheme", r.Alias()+".AddToScheme"); err != nil {
				return err
			}
			if err := s.DropImport(r.Alias(), r.Path); err != nil {
				return err
			}
		}
		return nil
	})
}

// editIfThere changes a Go file in place, if there is one.
func (c *command) editIfThere(name string, change func(s *gofile.File) error) error {
	if text, err := c.read(name); err != nil || text == nil {
		return err
	}
	return c.edit(name, change)
}
