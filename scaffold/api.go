// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"path"
	"strings"

	"github.com/steer-dev/steer/scaffold/internal/gofile"
	"github.com/steer-dev/steer/scaffold/project"
)

// APIOptions are those of [CreateAPI].
type APIOptions struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// GVK of the kind. Required; the group may be empty where the project has a
	// domain.
	project.GVK
	// Plural is the name of the resource. Default: the plural of the kind.
	Plural string
	// ClusterScoped makes objects of the kind belong to no namespace.
	ClusterScoped bool
	// NoResource leaves the types out: the kind is one of k8s.io/api or of External, or one
	// that the project has without a controller.
	NoResource bool
	// External is the module that has the types. Default: k8s.io/api.
	External project.External
	// NoController leaves the controller out. A further version of a kind that has a
	// controller never gets one of its own.
	NoController bool
	// NoGenerate leaves generated files, go.mod and go.sum as they are.
	NoGenerate bool
	// Force overwrites existing files.
	Force bool

	step func()
}

// CreateAPI adds a kind, or a version of one, to a project: its types, a controller
// with a test, and a sample.
func CreateAPI(ctx context.Context, o APIOptions) (*project.Report, error) {
	return run(o.Dir, o.Force, o.step, func(c *command) error { return o.run(ctx, c) })
}

func (o *APIOptions) run(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	r, err := o.resource(p)
	if err != nil {
		return err
	}
	if !o.NoResource {
		if err := c.addTypes(p, r); err != nil {
			return err
		}
	}
	if err := c.require(r.Module); err != nil {
		return err
	}
	if r.Controller && !o.NoController {
		scope := "Namespaced"
		if o.ClusterScoped {
			scope = "Cluster"
		}
		if err := c.addController(p, r, scope); err != nil {
			return err
		}
	}
	if i := p.Find(r.GVK()); i >= 0 {
		r.Webhooks = p.Resources[i].Webhooks
		p.Resources[i] = r
	} else {
		p.Resources = append(p.Resources, r)
	}
	return c.finish(ctx, p, o.NoGenerate)
}

// finish writes all files of a command that added to a project, and brings what
// follows from them up to date.
func (c *command) finish(ctx context.Context, p *project.Project, noGenerate bool) (err error) {
	if c.pending[project.File], err = p.Text(); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	if noGenerate {
		c.note("run `go mod tidy && go tool steer generate` for what follows from the new files")
		return nil
	}
	if err := c.generate(ctx, false); err != nil {
		return err
	}
	if err := c.kustomize(ctx, p); err != nil {
		return err
	}
	return c.tidy(ctx)
}

// require makes go.mod require a module at a version, if one is given as module@version.
// Without a version it is left to go mod tidy.
func (c *command) require(module string) error {
	name, version, ok := strings.Cut(module, "@")
	if !ok {
		return nil
	}
	mod, err := c.module()
	if err != nil {
		return err
	}
	if err := mod.AddRequire(name, version); err != nil {
		return err
	}
	c.pending[modFile], err = mod.Format()
	return err
}

// resource is what PROJECT will say of the kind.
func (o *APIOptions) resource(p *project.Project) (project.Resource, error) {
	if err := project.CheckGVK(o.GVK); err != nil {
		return project.Resource{}, err
	}
	if err := project.CheckPlural(o.Plural); err != nil {
		return project.Resource{}, err
	}
	if o.NoResource && o.NoController {
		return project.Resource{}, project.Usagef("neither types nor a controller are to be made: leave --resource=false or --controller=false out")
	}
	r := project.Resource{
		Controller: !o.NoController, Domain: p.Domain, Group: o.Group, Kind: o.Kind, Version: o.Version,
		Plural: o.Plural, API: &project.API{CRDVersion: "v1", Namespaced: !o.ClusterScoped},
	}
	if r.Plural == project.PluralOf(r.Kind) {
		r.Plural = ""
	}
	i := p.Find(o.GVK)
	switch {
	case o.NoResource && i >= 0:
		if p.Resources[i].Controller && !o.Force {
			return r, project.Usagef("%s has a controller already; --force writes it anew", o.GVK)
		}
		r = p.Resources[i]
		r.Controller = true
		return r, nil
	case o.NoResource:
		r, err := o.External.Resource(o.GVK)
		r.Controller, r.Plural = true, o.Plural
		return r, err
	case o.External != project.External{}:
		return r, project.Usagef("--external-api-path is for types that are there: give --resource=false with it")
	case i >= 0 && !o.Force && !o.NoController && !p.HasController(r):
		return r, project.Usagef("PROJECT has %s already: give --resource=false to add a controller, or --force to write its types anew", o.GVK)
	case i >= 0 && !o.Force:
		return r, project.Usagef("PROJECT has %s already; --force writes its files anew", o.GVK)
	}
	if r.APIGroup() == "" {
		return r, project.Usagef("--group is missing: give one such as webapp")
	}
	for _, other := range p.Served {
		if other.APIGroup() == r.APIGroup() && other.Version == r.Version {
			return r, project.Usagef("the custom API server of the project serves %s/%s: give another --group or --version, or add the kind to it with steer create server", r.APIGroup(), r.Version)
		}
	}
	for _, other := range p.Resources {
		switch {
		case other.Core:
		case other.Group != r.Group && !p.MultiGroup:
			return r, project.Usagef("the project has the group %q and no folders by group: run steer edit --multigroup first to add the group %q; what is there stays where it is", other.Group, r.Group)
		case other.Group == r.Group && other.Kind == r.Kind && other.Version != r.Version && other.Controller:
			r.Controller = false
		}
	}
	if err := o.likeOtherVersions(p, &r); err != nil {
		return r, err
	}
	r.Path = path.Join(p.Repo, places{p: p, r: r}.apiDir())
	for _, other := range p.Resources {
		if other.API != nil && other.Group == r.Group && other.Version == r.Version {
			r.Path = other.Path // one package has all kinds of a version
		}
	}
	return r, nil
}

// addTypes adds the types of a kind, their registration and a sample.
func (c *command) addTypes(p *project.Project, r project.Resource) error {
	at := c.placesOf(p, r)
	v := at.values()
	if text, err := c.read(at.groupVersion()); err != nil {
		return err
	} else if text == nil {
		if err := c.create(at.groupVersion(), "groupversion.go", v); err != nil {
			return err
		}
	}
	begun, err := c.copyVersion(p, r)
	if err != nil {
		return err
	}
	if !begun {
		if err := c.create(at.types(), "types.go", v); err != nil {
			return err
		}
	}
	if text := c.pending[at.sample]; text == nil {
		if err := c.create(at.sample, "sample.yaml", v); err != nil {
			return err
		}
	}
	if err := c.registerTypes(at); err != nil {
		return err
	}
	if err := c.storeFirstVersion(p, r); err != nil {
		return err
	}
	return c.useScheme(p, r)
}

// registerTypes registers the types of a kind with the scheme of their package.
func (c *command) registerTypes(at places) error {
	kind := at.r.Kind
	return c.edit(at.groupVersion(), func(s *gofile.File) error {
		found, err := s.Register(kind, kind+"List")
		if err == nil && !found {
			c.note("%s: register &%s{} and &%sList{} with the scheme", at.groupVersion(), kind, kind)
		}
		return err
	})
}

// storeFirstVersion marks the version that a kind was stored in so far, when it gets a
// second one: one of several versions has to be.
func (c *command) storeFirstVersion(p *project.Project, r project.Resource) error {
	const marker = "+kubebuilder:storageversion"
	var first string
	for _, other := range p.Resources {
		if other.API == nil || other.Group != r.Group || other.Kind != r.Kind || other.Version == r.Version {
			continue
		}
		name := c.placesOf(p, other).types()
		text, err := c.read(name)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), marker) {
			return nil
		}
		if text != nil && first == "" {
			first = name
		}
	}
	if first == "" {
		return nil
	}
	return c.edit(first, func(s *gofile.File) error {
		found, err := s.MarkType(r.Kind, marker)
		if err == nil && !found {
			c.note("add // %s to the version of %s that is stored", marker, r.Kind)
		}
		return err
	})
}

// useScheme makes the operator know the types.
func (c *command) useScheme(p *project.Project, r project.Resource) error {
	return c.editMain(func(s *gofile.File) error {
		add := r.Alias() + ".AddToScheme"
		found, err := s.AddElement("steer.Scheme", add)
		if err != nil {
			return err
		}
		if !found {
			c.note("%s: add %s of %s to the scheme of the operator", mainFile, add, r.Path)
			return nil
		}
		return s.ImportAs(r.Alias(), r.Path, p.Repo)
	})
}

// editMain changes cmd/main.go, if the project has one.
func (c *command) editMain(change func(s *gofile.File) error) error {
	text, err := c.read(mainFile)
	if err != nil {
		return err
	}
	if text == nil {
		c.note("there is no %s: add the kind to the scheme, and the controller to the setup, of your operator", mainFile)
		return nil
	}
	return c.edit(mainFile, change)
}

// addController adds a controller of a kind, with its test. The scope is for the stand-in
// for the definition of a kind of another module.
func (c *command) addController(p *project.Project, r project.Resource, scope string) error {
	at := c.placesOf(p, r)
	code, test := "controller.go", "controller_test.go"
	if r.API == nil {
		code, test = "controller_builtin.go", "controller_builtin_test.go"
		if err := c.useScheme(p, r); err != nil {
			return err
		}
	}
	if text, err := c.read(at.externalDefinition()); err != nil {
		return err
	} else if r.External && text == nil {
		v := at.values()
		v["scope"] = scope
		if err := c.create(at.externalDefinition(), "externalcrd.yaml", v); err != nil {
			return err
		}
	}
	if err := c.create(at.controller(), code, at.values()); err != nil {
		return err
	}
	if err := c.create(at.controllerTest(), test, at.values()); err != nil {
		return err
	}
	return c.editMain(func(s *gofile.File) error {
		_, imported := at.controllerPackage()
		found, err := s.AddSetup(func(m string) string {
			return "(&" + imported + "." + at.reconciler() + "{}).SetupWithManager(" + m + ")"
		})
		if err != nil {
			return err
		}
		if !found {
			c.note("%s: call SetupWithManager of %s in the setup of the operator", mainFile, at.reconciler())
			return nil
		}
		return s.ImportAs(imported, path.Join(p.Repo, at.controllerDir), p.Repo)
	})
}
