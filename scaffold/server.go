// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/internal/gofile"
	"github.com/steer-dev/steer/scaffold/project"
)

// ServerOptions are those of [CreateServer].
type ServerOptions struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// GVK of the kind that the server serves. Required; the group may be empty where the
	// project has a domain.
	project.GVK
	// Plural is the name of the resource. Default: the plural of the kind.
	Plural string
	// ClusterScoped makes objects of the kind belong to no namespace.
	ClusterScoped bool
	// NoGenerate leaves generated files, go.mod and go.sum as they are.
	NoGenerate bool
	// Force overwrites existing files.
	Force bool

	step func()
}

// The custom API server of a project.
const (
	serverDir     = "cmd/server"
	serverFile    = serverDir + "/main.go"
	serverTest    = serverDir + "/main_test.go"
	definitionDir = serverDir + "/definitions"
)

// CreateServer adds a custom API server to a project, or a kind to the one that it has.
func CreateServer(ctx context.Context, o ServerOptions) (*project.Report, error) {
	return run(o.Dir, o.Force, o.step, func(c *command) error { return o.run(ctx, c) })
}

func (o *ServerOptions) run(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	r, err := o.resource(p)
	if err != nil {
		return err
	}
	if err := c.addServedTypes(p, r); err != nil {
		return err
	}
	if err := c.serve(p, r); err != nil {
		return err
	}
	if i := p.FindServed(r.GVK()); i >= 0 {
		p.Served[i] = r
	} else {
		p.Served = append(p.Served, r)
	}
	return c.finish(ctx, p, o.NoGenerate)
}

// resource is what PROJECT will say of the kind.
func (o *ServerOptions) resource(p *project.Project) (project.Resource, error) {
	if err := project.CheckGVK(o.GVK); err != nil {
		return project.Resource{}, err
	}
	if err := project.CheckPlural(o.Plural); err != nil {
		return project.Resource{}, err
	}
	r := project.Resource{
		API:    &project.API{Namespaced: !o.ClusterScoped},
		Domain: p.Domain, Group: o.Group, Version: o.Version, Kind: o.Kind, Plural: o.Plural,
	}
	if r.Plural == project.PluralOf(r.Kind) {
		r.Plural = ""
	}
	r.Path = path.Join(p.Repo, "api", cmp.Or(r.Group, project.GoName(r.Domain)), r.Version)
	if r.APIGroup() == "" {
		return r, project.Usagef("--group is missing: give one such as webapp")
	}
	for _, other := range p.Resources {
		if other.APIGroup() == r.APIGroup() && other.Version == r.Version {
			return r, project.Usagef("the project has CustomResourceDefinitions of %s/%s, and one server serves a version of a group: give another --group or --version", r.APIGroup(), r.Version)
		}
	}
	for _, other := range p.Served {
		switch {
		case other.Group != r.Group || other.Kind != r.Kind:
		case other.Version != r.Version:
			return r, project.Usagef("the server has %s: a further version needs functions that convert; write its types beside those of %s, and add it in %s with custom.Spoke", other.GVK(), other.Version, serverFile)
		case !o.Force:
			return r, project.Usagef("PROJECT has %s already; --force writes its files anew", o.GVK)
		}
	}
	return r, nil
}

// addServedTypes adds the types of a kind, whose definition goes to the server.
func (c *command) addServedTypes(p *project.Project, r project.Resource) error {
	at := c.placesOf(p, r)
	v := at.values()
	v["definitions"] = "// +steer:definitions=" + definitionDir + "\n"
	if err := c.create(at.types(), "types.go", v); err != nil {
		return err
	}
	if text, err := c.read(at.groupVersion()); err != nil {
		return err
	} else if text == nil {
		if err := c.create(at.groupVersion(), "groupversion.go", v); err != nil {
			return err
		}
	}
	return c.registerTypes(at)
}

// serve adds a kind to the server, which is made with the first one.
func (c *command) serve(p *project.Project, r project.Resource) error {
	for name, template := range map[string]string{serverFile: "server.go", serverTest: "server_test.go"} {
		if text, err := c.read(name); err != nil {
			return err
		} else if text == nil {
			if err := c.create(name, template, values{"name": p.Name}); err != nil {
				return err
			}
		}
	}
	err := c.edit(serverFile, func(s *gofile.File) error {
		kind := servedType(r)
		if s.Element(kindList, kind) != nil {
			return nil
		}
		element := fmt.Sprintf("%s{Definition: definition(%q)}", kind, definitionFile(r))
		found, err := s.AddElement(kindList, element)
		if err != nil {
			return err
		}
		if !found {
			c.note("%s: add %s to the kinds of the server", serverFile, element)
			return nil
		}
		return s.ImportAs(r.Alias(), r.Path, p.Repo)
	})
	if err != nil {
		return err
	}
	return c.editMakefile(func(text string) string {
		if strings.Contains(text, "\nrun-server:") {
			return text
		}
		return text + runServer
	})
}

// kindList is the type of the list of kinds in the server.
const kindList = "[]extension.Kind"

// servedType is the type of the element of a kind in that list.
func servedType(r project.Resource) string { return "custom.Kind[*" + r.Alias() + "." + r.Kind + "]" }

// definitionFile is the name of the file that the definition of a kind is generated to.
func definitionFile(r project.Resource) string { return r.APIGroup() + "_" + r.PluralName() + ".yaml" }

// runServer is the target of the Makefile that runs the server.
const runServer = `
.PHONY: run-server
run-server: ## run the custom API server alone; its kubeconfig is .steer/server.kubeconfig
	@mkdir -p .steer
	go run ./cmd/server --standalone --write-kubeconfig .steer/server.kubeconfig
`

// editMakefile changes the Makefile, if there is one.
func (c *command) editMakefile(change func(text string) string) error {
	text, err := c.read(makeFile)
	if err != nil || text == nil {
		return err
	}
	c.pending[makeFile] = []byte(change(string(text)))
	return nil
}

// DeleteServer removes a kind from the custom API server of a project, and the server with
// the last one.
func DeleteServer(ctx context.Context, o DeleteOptions) (*project.Report, error) {
	return o.run(func(c *command) error { return o.deleteServer(ctx, c) })
}

func (o *DeleteOptions) deleteServer(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	i := p.FindServed(o.GVK)
	if i < 0 {
		return project.Usagef("the server does not have %s: it has %s", o.GVK, list(p.Served))
	}
	r := p.Served[i]
	p.Served = slices.Delete(p.Served, i, i+1)
	at := c.placesOf(p, r)
	c.remove(at.types())
	if err := c.unregisterTypes(at, p.Served); err != nil {
		return err
	}
	c.remove(path.Join(definitionDir, definitionFile(r)))
	if len(p.Served) == 0 {
		c.remove(serverFile, serverTest)
		if err := c.editMakefile(func(text string) string { return strings.Replace(text, runServer, "", 1) }); err != nil {
			return err
		}
	} else if err := c.stopServing(r); err != nil {
		return err
	}
	return o.finish(ctx, c, p)
}

// stopServing takes a kind out of the list of kinds of the server.
func (c *command) stopServing(r project.Resource) error {
	return c.edit(serverFile, func(s *gofile.File) error {
		element := s.Element(kindList, servedType(r))
		if element == nil {
			c.note("%s: remove %s from the kinds of the server", serverFile, servedType(r))
			return nil
		}
		if err := s.RemoveFrom(element); err != nil {
			return err
		}
		return s.DropImport(r.Alias(), r.Path)
	})
}
