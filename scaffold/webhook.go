// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"context"
	"errors"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/scaffold/internal/gofile"
	"github.com/steer-dev/steer/scaffold/project"
)

// WebhookOptions are those of [CreateWebhook].
type WebhookOptions struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// GVK of the kind: one of the project, or of k8s.io/api. Required.
	project.GVK
	// Defaulting adds a webhook.Defaulter, Validation a webhook.Validator, and Conversion
	// makes the version the hub that other versions convert to and from. One of them is
	// required.
	Defaulting, Validation, Conversion bool
	// DefaultingPath and ValidationPath are where the webhooks are served. Default: the ones
	// of kubebuilder, /mutate-GROUP-VERSION-KIND and /validate-GROUP-VERSION-KIND.
	DefaultingPath, ValidationPath string
	// External is the module that has the types of a kind that the project does not have.
	// Default: k8s.io/api.
	External project.External
	// Spokes are the versions that are converted. Default: all others of the kind.
	Spokes []string
	// NoGenerate leaves generated files, go.mod and go.sum as they are.
	NoGenerate bool
	// Force overwrites existing files.
	Force bool

	step func()
}

// CreateWebhook adds webhooks of a kind, also to the operator of its controller's test.
// What the kind has of them stays as it is.
func CreateWebhook(ctx context.Context, o WebhookOptions) (*project.Report, error) {
	return run(o.Dir, o.Force, o.step, func(c *command) error { return o.run(ctx, c) })
}

func (o *WebhookOptions) run(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	i, err := o.resource(p)
	if err != nil {
		return err
	}
	r := &p.Resources[i]
	had := r.Webhooks
	var spokes []project.Resource
	if o.Conversion {
		if spokes, err = o.spokes(p, *r); err != nil {
			return err
		}
	}
	// Begun anew: the first webhooks of the kind, or Force for one that it has.
	anew := had == nil || o.Defaulting && had.Defaulting || o.Validation && had.Validation
	if had == nil {
		r.Webhooks = &project.Webhooks{WebhookVersion: "v1"}
		if r.API == nil && !r.Controller {
			if err := c.useScheme(p, *r); err != nil {
				return err
			}
			if err := c.require(r.Module); err != nil {
				return err
			}
		}
	}
	for _, part := range []struct {
		wanted   bool
		has      *bool
		template string
		call     string
		path     string // other than the default one
	}{
		{o.Defaulting, &r.Webhooks.Defaulting, "defaulter", "webhook.AddDefaulter(m, &" + r.Kind + "Defaulter{}", o.DefaultingPath},
		{o.Validation, &r.Webhooks.Validation, "validator", "webhook.AddValidator(m, &" + r.Kind + "Validator{}", o.ValidationPath},
		{o.Conversion, &r.Webhooks.Conversion, "", "webhook.AddConversion(m, &" + r.Alias() + "." + r.Kind + "{}", ""},
	} {
		if !part.wanted && (!anew || !*part.has) {
			continue
		}
		*part.has = true
		if part.path != "" {
			part.call += ", webhook.Path(" + strconv.Quote(part.path) + ")"
		}
		if err := c.addWebhook(p, *r, anew, part.template, part.call+")", part.path); err != nil {
			return err
		}
	}
	if o.Conversion {
		for _, spoke := range spokes {
			r.Webhooks.Spoke = append(r.Webhooks.Spoke, spoke.Version)
		}
		if err := c.addConversion(p, *r, spokes); err != nil {
			return err
		}
	}
	if err := c.setUpWebhooks(p, *r); err != nil {
		return err
	}
	return c.finish(ctx, p, o.NoGenerate)
}

// resource is the index of the kind among those of the project, to which one of
// k8s.io/api is added.
func (o *WebhookOptions) resource(p *project.Project) (int, error) {
	if err := project.CheckGVK(o.GVK); err != nil {
		return 0, err
	}
	if !o.Defaulting && !o.Validation && !o.Conversion {
		return 0, project.Usagef("no webhook is to be made: give --defaulting, --programmatic-validation, --conversion or several")
	}
	switch {
	case o.DefaultingPath != "" && !o.Defaulting:
		return 0, project.Usagef("--defaulting-path %s is where the defaulter is served: give --defaulting with it", o.DefaultingPath)
	case o.ValidationPath != "" && !o.Validation:
		return 0, project.Usagef("--validation-path %s is where the validator is served: give --programmatic-validation with it", o.ValidationPath)
	}
	if err := errors.Join(project.CheckPath("--defaulting-path", o.DefaultingPath), project.CheckPath("--validation-path", o.ValidationPath)); err != nil {
		return 0, err
	}
	if len(o.Spokes) > 0 && !o.Conversion {
		return 0, project.Usagef("--spoke %s is a version to convert: give --conversion with it", o.Spokes[0])
	}
	i := p.Find(o.GVK)
	if i < 0 && o.Conversion {
		return 0, project.Usagef("PROJECT does not have %s, whose versions are to be converted: it has %s", o.GVK, list(p.Resources))
	}
	if i < 0 {
		r, err := o.External.Resource(o.GVK)
		if err != nil {
			return 0, err
		}
		p.Resources = append(p.Resources, r)
		return len(p.Resources) - 1, nil
	}
	has := p.Resources[i].Webhooks
	if has == nil || o.Force {
		return i, nil
	}
	switch {
	case o.Defaulting && has.Defaulting:
		return i, project.Usagef("%s has a defaulting webhook already: leave --defaulting out, or give --force to write it anew", o.GVK)
	case o.Validation && has.Validation:
		return i, project.Usagef("%s has a validating webhook already: leave --programmatic-validation out, or give --force to write it anew", o.GVK)
	}
	return i, nil
}

// addWebhook adds one webhook to the file of those of its kind, which it makes.
func (c *command) addWebhook(p *project.Project, r project.Resource, anew bool, template, call, served string) error {
	at := c.placesOf(p, r)
	v := at.values()
	suffix := at.dashGroup() + "-" + r.Version + "-" + at.lower()
	v["mutatepath"], v["validatepath"] = cmp.Or(served, "/mutate-"+suffix), cmp.Or(served, "/validate-"+suffix)
	if err := c.extend(at.webhook(), anew, "webhook.go", template, v); err != nil {
		return err
	}
	return c.edit(at.webhook(), func(s *gofile.File) error {
		if err := s.ImportAs("webhook", steerPath+"/webhook", p.Repo); err != nil {
			return err
		}
		if template != "" {
			if err := s.ImportAs("context", "context", p.Repo); err != nil {
				return err
			}
		}
		setup := s.Function("Setup" + r.Kind + "WebhookWithManager")
		if setup == nil {
			c.note("%s: call %s where the webhooks are added", at.webhook(), call)
			return nil
		}
		join := s.Call(setup, "errors.Join")
		if join == nil {
			c.note("%s: call %s in %s", at.webhook(), call, setup.Name.Name)
			return nil
		}
		if slices.ContainsFunc(join.Args, func(e ast.Expr) bool { return s.Text(e) == call }) {
			return nil
		}
		return s.AppendTo(join.Args, join.Lparen, join.Rparen, call)
	})
}

// extend appends a part, if it is not empty, to a Go file, which begins as a template of
// its own if there is none, or if it is begun anew.
func (c *command) extend(name string, anew bool, base, part string, v values) error {
	text, err := c.read(name)
	if err != nil {
		return err
	}
	if _, begun := c.pending[name]; text == nil || anew && !begun {
		if err := c.create(name, base, v); err != nil {
			return err
		}
		text = c.pending[name]
	}
	if part == "" {
		return nil
	}
	more, err := fill(part+".go", v)
	if err != nil {
		return err
	}
	c.pending[name] = slices.Concat(text, more)
	return nil
}

// installed is the option of a test that has the webhook configurations installed.
const installed = `Webhooks: []string{"config/webhook"}`

// setUpWebhooks makes the operator add the webhooks of a kind, that of the controller's
// test as well.
func (c *command) setUpWebhooks(p *project.Project, r project.Resource) error {
	at := c.placesOf(p, r)
	imported := at.webhookImport()
	function := imported + ".Setup" + r.Kind + "WebhookWithManager"
	add := func(file string) func(s *gofile.File) error {
		return func(s *gofile.File) error {
			if s.Call(s.Syntax(), function) != nil {
				return nil
			}
			found, err := s.AddSetup(func(m string) string { return function + "(" + m + ")" })
			if err != nil {
				return err
			}
			if !found {
				c.note("%s: call %s in the setup of the operator", file, function)
				return nil
			}
			return s.ImportAs(imported, path.Join(p.Repo, at.webhookDir), p.Repo)
		}
	}
	if text, err := c.read(at.controllerTest()); err != nil {
		return err
	} else if text != nil {
		err := c.edit(at.controllerTest(), func(s *gofile.File) error {
			if err := add(at.controllerTest())(s); err != nil {
				return err
			}
			if found, err := s.AddElement("steer.Scheme", r.Alias()+".AddToScheme"); err != nil {
				return err
			} else if found {
				if err := s.ImportAs(r.Alias(), r.Path, p.Repo); err != nil {
					return err
				}
			}
			if !r.Webhooks.Defaulting && !r.Webhooks.Validation {
				return nil // a conversion is part of the definition
			}
			_, err := s.AddElement("steertest.Options", installed)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.editMain(add(mainFile))
}

// DeleteWebhook removes the webhooks of a kind from a project.
func DeleteWebhook(ctx context.Context, o DeleteOptions) (*project.Report, error) {
	return o.run(func(c *command) error { return o.deleteWebhook(ctx, c) })
}

func (o *DeleteOptions) deleteWebhook(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	i := p.Find(o.GVK)
	if i < 0 || p.Resources[i].Webhooks == nil {
		return project.Usagef("PROJECT has no webhooks of %s", o.GVK)
	}
	r := p.Resources[i]
	at := c.placesOf(p, r)
	p.Resources[i].Webhooks = nil
	if r.Webhooks.Conversion {
		if err := c.removeConversion(p, r, r.Webhooks.Spoke); err != nil {
			return err
		}
	}
	if err := c.dropTestSchemes(p, r); err != nil {
		return err
	}
	alone := r.API == nil && !r.Controller // a kind of k8s.io/api with nothing else
	if alone {
		p.Resources = slices.Delete(p.Resources, i, i+1)
	}
	if text, err := c.read(at.webhook()); err == nil && text == nil {
		c.note("there is no %s: remove the webhooks of %s from the file that has them", at.webhook(), r.GVK())
	}
	c.remove(at.webhook())
	imported := at.webhookImport()
	function := imported + ".Setup" + r.Kind + "WebhookWithManager"
	drop := func(file string) func(s *gofile.File) error {
		return func(s *gofile.File) error {
			found, err := s.RemoveSetup(func(call *ast.CallExpr) bool { return s.Text(call.Fun) == function })
			if err != nil {
				return err
			}
			if !found && s.Call(s.Syntax(), function) != nil {
				c.note("%s: remove the call of %s", file, function)
			}
			return s.DropImport(imported, path.Join(p.Repo, at.webhookDir))
		}
	}
	if text, err := c.read(at.controllerTest()); err != nil {
		return err
	} else if text != nil {
		err := c.edit(at.controllerTest(), func(s *gofile.File) error {
			if _, err := s.RemoveElement("steertest.Options", installed); err != nil {
				return err
			}
			return drop(at.controllerTest())(s)
		})
		if err != nil {
			return err
		}
	}
	if err := c.editMain(drop(mainFile)); err != nil {
		return err
	}
	if alone {
		if err := c.dropScheme(p, r); err != nil {
			return err
		}
	}
	return o.finish(ctx, c, p)
}

func (pl places) webhook() string { return path.Join(pl.webhookDir, pl.lower()+"_webhook.go") }

// webhookImport is the name under which cmd/main.go imports the webhooks.
func (pl places) webhookImport() string {
	if path.Dir(pl.webhookDir) != webhookDir {
		return "webhook" + project.GoName(pl.r.Group) + pl.r.Version
	}
	return "webhook" + pl.r.Version
}

// webhookName is the name of a webhook after its first letter: the one that kubebuilder gives,
// if no kind of another group has it.
func (pl places) webhookName() string {
	name := pl.lower() + "-" + pl.r.Version
	for _, other := range pl.p.Resources {
		if other.Group != pl.r.Group && other.Kind == pl.r.Kind && other.Version == pl.r.Version && other.Webhooks != nil {
			return name + "-" + cmp.Or(pl.dashGroup(), "core") + ".kb.io"
		}
	}
	return name + ".kb.io"
}

// dashGroup is the API group as the paths of webhooks have it.
func (pl places) dashGroup() string { return strings.ReplaceAll(pl.r.APIGroup(), ".", "-") }
