// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/steer-dev/steer/scaffold/internal/gofile"
	"github.com/steer-dev/steer/scaffold/project"
)

// DeleteOptions are those of [DeleteAPI] and [DeleteWebhook].
type DeleteOptions struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// GVK of the kind. Required.
	project.GVK
	// Force removes files also where git does not have their contents.
	Force bool
	// DryRun changes nothing: the report says what would be.
	DryRun bool

	step func()
}

// errDryRun makes a command restore what it changed.
var errDryRun = errors.New("scaffold: dry run")

// DeleteAPI removes a version of a kind from a project: its types and sample, and what was
// generated of them. The controller goes with the last version; while there is another one,
// it reconciles that.
func DeleteAPI(ctx context.Context, o DeleteOptions) (*project.Report, error) {
	return o.run(func(c *command) error { return o.deleteAPI(ctx, c) })
}

// run runs a command that removes; a dry run restores all.
func (o *DeleteOptions) run(act func(c *command) error) (*project.Report, error) {
	var planned project.Report
	report, err := run(o.Dir, o.Force, o.step, func(c *command) error {
		if err := act(c); err != nil {
			return err
		}
		if o.DryRun {
			planned = c.report
			return errDryRun
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		return &planned, nil
	}
	return report, err
}

func (o *DeleteOptions) deleteAPI(ctx context.Context, c *command) error {
	p, err := project.Read(c.dir)
	if err != nil {
		return err
	}
	i := p.Find(o.GVK)
	switch {
	case i < 0:
		return project.Usagef("PROJECT does not have %s: it has %s", o.GVK, list(p.Resources))
	case p.Resources[i].Webhooks != nil:
		return project.Usagef("%s has webhooks: remove them first with steer delete webhook --group %q --version %s --kind %s", o.GVK, o.Group, o.Version, o.Kind)
	}
	r := p.Resources[i]
	if hub := p.HubOf(r); hub >= 0 {
		version := p.Resources[hub].Version
		return project.Usagef("%s is converted to and from %s: remove that first with steer delete webhook --group %q --version %s --kind %s", o.GVK, version, o.Group, version, o.Kind)
	}
	p.Resources = slices.Delete(p.Resources, i, i+1)
	others := versionsOf(p, r)
	switch {
	case r.Controller && len(others) > 0:
		err = c.moveController(p, r, others[0])
	case r.Controller:
		err = c.removeController(p, r)
	}
	if err != nil {
		return err
	}
	if len(others) > 1 {
		if err := c.storeFirstVersion(p, r); err != nil {
			return err
		}
	}
	if r.API != nil {
		if err := c.removeTypes(p, r); err != nil {
			return err
		}
	} else if err := c.dropScheme(p, r); err != nil {
		return err
	}
	return o.finish(ctx, c, p)
}

// finish writes all files, if git has the contents of those that are removed.
func (o *DeleteOptions) finish(ctx context.Context, c *command, p *project.Project) (err error) {
	if !o.Force {
		if err := c.checkCommitted(ctx); err != nil {
			return err
		}
	}
	if c.pending[project.File], err = p.Text(); err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	return c.regenerate(ctx, p)
}

// list names kinds.
func list(resources []project.Resource) string {
	var names []string
	for _, r := range resources {
		names = append(names, r.GVK().String())
	}
	if len(names) == 0 {
		return "no kinds"
	}
	return strings.Join(names, ", ")
}

// regenerate removes generated files that nothing asks for any more. Without any kind
// there is nothing to generate, and all of them go.
func (c *command) regenerate(ctx context.Context, p *project.Project) error {
	if len(p.Resources)+len(p.Served) > 0 {
		if err := c.generate(ctx, true); err != nil {
			return err
		}
		return c.kustomize(ctx, p)
	}
	for _, pattern := range []string{project.CRDDir + "/*.yaml", "config/rbac/role.yaml", "config/webhook/manifests.yaml"} {
		paths, err := filepath.Glob(c.path(pattern))
		if err != nil {
			return err
		}
		for _, found := range paths {
			name, err := filepath.Rel(c.dir, found)
			if err != nil {
				return err
			}
			c.pending[filepath.ToSlash(name)] = nil
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	return c.kustomize(ctx, p)
}

// removeController removes a controller and its test.
func (c *command) removeController(p *project.Project, r project.Resource) error {
	at := c.placesOf(p, r)
	c.remove(at.controller(), at.controllerTest())
	if r.External {
		c.remove(at.externalDefinition())
	}
	return c.editMain(func(s *gofile.File) error {
		_, imported := at.controllerPackage()
		found, err := s.RemoveSetup(s.SetsUp(imported + "." + at.reconciler()))
		if err != nil {
			return err
		}
		if !found {
			c.note("%s: remove the call of SetupWithManager of %s", mainFile, at.reconciler())
		}
		return s.DropImport(imported, path.Join(p.Repo, at.controllerDir))
	})
}

// moveController makes a controller reconcile another version of its kind.
func (c *command) moveController(p *project.Project, from, to project.Resource) error {
	at := c.placesOf(p, from)
	for _, name := range []string{at.controller(), at.controllerTest()} {
		err := c.editIfThere(name, func(s *gofile.File) error {
			found, err := s.RemoveElement("steer.Scheme", from.Alias()+".AddToScheme")
			if err == nil && found {
				_, err = s.AddElement("steer.Scheme", to.Alias()+".AddToScheme")
			}
			if err != nil {
				return err
			}
			if err := s.ReplaceString(at.sample, c.placesOf(p, to).sample); err != nil {
				return err
			}
			return s.Requalify(from.Path, to.Alias(), to.Path, p.Repo)
		})
		if err != nil {
			return err
		}
	}
	p.Resources[p.Find(to.GVK())].Controller = true
	c.note("%s reconciles %s now: change what the versions do not have in common", at.controller(), to.GVK())
	return nil
}

// removeTypes removes the types of a kind, and the package with the last of them.
func (c *command) removeTypes(p *project.Project, r project.Resource) error {
	at := c.placesOf(p, r)
	c.remove(at.types(), at.sample)
	if err := c.unregisterTypes(at, p.Resources); err != nil {
		return err
	}
	return c.dropScheme(p, r)
}

// unregisterTypes removes the types of a kind from the scheme of their package, which goes
// where none of the kinds that are left is in it.
func (c *command) unregisterTypes(at places, left []project.Resource) error {
	if !slices.ContainsFunc(left, func(other project.Resource) bool { return other.Path == at.r.Path }) {
		c.remove(at.groupVersion(), path.Join(at.apiDir(), "zz_generated.deepcopy.go"))
		return nil
	}
	return c.edit(at.groupVersion(), func(s *gofile.File) error {
		return s.Unregister(at.r.Kind, at.r.Kind+"List")
	})
}

// dropScheme makes the operator forget the types of a package that no resource of the
// project is in any more.
func (c *command) dropScheme(p *project.Project, r project.Resource) error {
	if slices.ContainsFunc(p.Resources, func(other project.Resource) bool { return other.Path == r.Path }) {
		return nil
	}
	return c.editMain(func(s *gofile.File) error {
		remove := r.Alias() + ".AddToScheme"
		found, err := s.RemoveElement("steer.Scheme", remove)
		if err != nil {
			return err
		}
		if !found {
			c.note("%s: remove %s from the scheme of the operator", mainFile, remove)
		}
		return s.DropImport(r.Alias(), r.Path)
	})
}

// remove removes files, as far as there are any.
func (c *command) remove(names ...string) {
	for _, name := range names {
		c.pending[name] = nil
	}
}

// checkCommitted refuses to remove files whose contents git does not have.
func (c *command) checkCommitted(ctx context.Context) error {
	var names []string
	for name, after := range c.pending {
		if _, err := os.Stat(c.path(name)); err == nil && after == nil && !strings.HasPrefix(path.Base(name), "zz_generated.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil
	}
	git := exec.CommandContext(ctx, "git", append([]string{"status", "--porcelain", "--ignored", "-z", "--no-renames", "--"}, names...)...)
	git.Dir = c.dir
	out, err := git.Output()
	if err != nil { // no repository, or no git
		return &ExistError{Paths: names, Reason: "files would be removed that git does not have"}
	}
	if len(out) == 0 {
		return nil
	}
	// Paths are relative to the repository: the files of the project that are in it.
	var open []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		for _, name := range names {
			if len(entry) > 3 && (strings.HasSuffix("/"+entry[3:], "/"+name) || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry[3:])) {
				open = append(open, name)
			}
		}
	}
	if len(open) == 0 {
		open = names
	}
	slices.Sort(open)
	return &ExistError{Paths: slices.Compact(open), Reason: "files would be removed with contents that git does not have"}
}
