// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

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
	// NoGenerate leaves go.mod and go.sum as they are.
	NoGenerate bool
	// Force overwrites existing files.
	Force bool

	step func()
}

// serverDir is the folder of the custom API server of a project.
const serverDir = "cmd/server"

// CreateServer adds a custom API server to a project, or a kind to the one that it has.
func CreateServer(ctx context.Context, o ServerOptions) (*project.Report, error) {
	return run(o.Dir, o.Force, o.step, func(c *command) error { return o.run(ctx, c) })
}

func (o *ServerOptions) run(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	if err := project.CheckGVK(o.GVK); err != nil {
		return err
	}
	if err := project.CheckPlural(o.Plural); err != nil {
		return err
	}
	r := project.Resource{Domain: p.Domain, Group: o.Group, Version: o.Version, Kind: o.Kind, Plural: o.Plural}
	if r.APIGroup() == "" {
		return project.Usagef("--group is missing: give one such as webapp")
	}
	if slices.ContainsFunc(p.Resources, func(other project.Resource) bool {
		return other.APIGroup() == r.APIGroup() && other.Version == r.Version
	}) {
		return project.Usagef("the project has CustomResourceDefinitions of %s/%s, and one server serves a version of a group: give another --group or --version", r.APIGroup(), r.Version)
	}
	scope := "Namespaced"
	if o.ClusterScoped {
		scope = "Cluster"
	}
	v := values{
		"name": p.Name, "group": r.APIGroup(), "version": r.Version, "kind": r.Kind, "scope": scope,
		"plural": cmp.Or(r.Plural, r.PluralName()), "singular": strings.ToLower(r.Kind),
	}
	definition := path.Join(serverDir, "definitions", strings.ToLower(r.Kind)+".yaml")
	if err := c.create(definition, "definition.yaml", v); err != nil {
		return err
	}
	for name, template := range map[string]string{"main.go": "server.go", "main_test.go": "server_test.go"} {
		name = path.Join(serverDir, name)
		if text, err := c.read(name); err != nil {
			return err
		} else if text == nil { // the server reads all definitions
			if err := c.create(name, template, v); err != nil {
				return err
			}
		}
	}
	if err := c.runServer(); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	if o.NoGenerate {
		c.note("run `go mod tidy` to complete go.mod and go.sum")
		return nil
	}
	return c.tidy(ctx)
}

// runServer adds the target that runs the server to the Makefile, if there is one.
func (c *command) runServer() error {
	const target = `
.PHONY: run-server
run-server: ## run the custom API server alone; its kubeconfig is .steer/server.kubeconfig
	@mkdir -p .steer
	go run ./cmd/server --standalone --write-kubeconfig .steer/server.kubeconfig
`
	text, err := c.read(makeFile)
	if err != nil || text == nil || strings.Contains(string(text), "\nrun-server:") {
		return err
	}
	c.pending[makeFile] = append(slices.Clone(text), target...)
	return nil
}
