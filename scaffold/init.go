// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/steer-dev/steer/scaffold/project"
)

// InitOptions are those of [Init].
type InitOptions struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// Domain of the API groups, such as example.com. Required.
	Domain string
	// Repo is the path of the Go module. Default: that of the go.mod that is there,
	// otherwise the domain and the project's name.
	Repo string
	// Name of the project and of its operator. Default: the name of the folder.
	Name string
	// License of the project's Go files: apache2, or none, the default. It is written to
	// hack/boilerplate.go.txt, from where later files get it.
	License string
	// LicenseFile is a file with the text of another license: comments of Go.
	LicenseFile string
	// Owner is who the license names. Default: the authors of the project.
	Owner string
	// MultiGroup gives every API group folders of its own.
	MultiGroup bool
	// Layout is one of [Layouts]. Default: lean.
	Layout string
	// With adds files that not every project wants, by the names of [Extras].
	With []string
	// Force overwrites existing files.
	Force bool
	// Offline leaves out what may need the network: go.mod and go.sum are not
	// completed.
	Offline bool
	// Steer is the version of Steer to require, such as v1.2.0. One of Steer and
	// Checkout is required.
	Steer string
	// Checkout is a folder with Steer's sources to use in place of a version.
	Checkout string

	step func()
}

// Init makes a project without kinds.
func Init(ctx context.Context, o InitOptions) (*project.Report, error) {
	return run(o.Dir, o.Force, o.step, func(c *command) error { return o.run(ctx, c) })
}

func (o *InitOptions) run(ctx context.Context, c *command) error {
	if text, err := c.read(project.File); err != nil {
		return err
	} else if text != nil && !o.Force {
		return project.Usagef("%s has a file PROJECT already: add to it with steer create api, or begin anew with --force", c.dir)
	}
	if err := project.CheckDomain(o.Domain); err != nil {
		return err
	}
	layout, err := layoutOf(o.Layout)
	if err != nil {
		return err
	}
	if layout == project.KubebuilderLayout {
		o.With = append(slices.Clone(o.With), "dockerfile")
	}
	further, err := extrasOf(o.With)
	if err != nil {
		return err
	}
	mod, err := c.module()
	if err != nil {
		return err
	}
	p := &project.Project{
		Domain: o.Domain, Layout: []string{layout}, MultiGroup: o.MultiGroup, Version: project.Version,
		Name: cmp.Or(o.Name, project.NameOf(c.dir)),
	}
	if err := project.CheckName(p.Name); err != nil {
		return err
	}
	p.Repo = cmp.Or(o.Repo, modulePathOf(mod), o.Domain+"/"+p.Name)
	if err := project.CheckRepo(p.Repo); err != nil {
		return err
	}
	if was := modulePathOf(mod); was != "" && was != p.Repo {
		return project.Usagef("--repo is %q, but go.mod says module %s: leave --repo out, or change go.mod", p.Repo, was)
	}
	if err := o.require(mod, p.Repo); err != nil {
		return err
	}
	if c.pending[modFile], err = mod.Format(); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	if c.pending[project.File], err = p.Text(); err != nil {
		return err
	}
	c.made[project.File] = true
	if err := o.license(c, p); err != nil {
		return err
	}
	v := recipes(p, slices.Contains(o.With, "dockerfile"))
	for name, template := range map[string]string{mainFile: "main.go", makeFile: "Makefile", settingsFile: "steer.yaml"} {
		if err := c.create(name, template, v); err != nil {
			return err
		}
	}
	if text, err := c.read(gitIgnore); err != nil {
		return err
	} else if text == nil {
		if err := c.create(gitIgnore, "gitignore", v); err != nil {
			return err
		}
	}
	for _, extra := range further {
		for name, template := range extra.files {
			if err := c.create(name, template, v); err != nil {
				return err
			}
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	if o.Offline {
		c.note("run `go mod tidy` to complete go.mod and go.sum")
		return nil
	}
	return c.tidy(ctx)
}

// license writes the header of Go files.
func (o *InitOptions) license(c *command, p *project.Project) error {
	if o.LicenseFile != "" {
		text, err := os.ReadFile(o.LicenseFile)
		if err != nil {
			return project.Usagef("--license-file: %v", err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", string(text)+"\n\npackage p\n", 0); err != nil {
			return project.Usagef("--license-file: %s is no comment of Go: begin its lines with //", o.LicenseFile)
		}
		c.pending[headerFile], c.made[headerFile] = append(bytes.TrimRight(text, "\n"), '\n'), true
		return nil
	}
	switch o.License {
	case "", "none":
		return nil
	case "apache2":
		owner := cmp.Or(o.Owner, "The "+p.Name+" authors")
		return c.create(headerFile, "boilerplate", values{"year": time.Now().Format("2006"), "owner": owner})
	}
	return project.Usagef("--license %q is not known: give apache2 or none, or another text with --license-file", o.License)
}

// module is the go.mod of the folder, or an empty one.
func (c *command) module() (*modfile.File, error) {
	text, err := c.read(modFile)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(c.path(modFile), text, nil)
	if err != nil {
		return nil, project.Usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return mod, nil
}

func modulePathOf(mod *modfile.File) string {
	if mod.Module == nil {
		return ""
	}
	return mod.Module.Mod.Path
}

// require makes a go.mod require Steer.
func (o *InitOptions) require(mod *modfile.File, repo string) error {
	if err := mod.AddModuleStmt(repo); err != nil {
		return err
	}
	if mod.Go == nil {
		if err := mod.AddGoStmt(goVersion); err != nil {
			return err
		}
	}
	if err := mod.AddTool(steerTool); err != nil {
		return err
	}
	version := o.Steer
	switch {
	case o.Checkout != "":
		version = noVersion
		text, err := os.ReadFile(filepath.Join(o.Checkout, modFile))
		if err != nil || modfile.ModulePath(text) != steerPath {
			return project.Usagef("%s is no checkout of Steer: it has no go.mod of module %s", o.Checkout, steerPath)
		}
		if err := mod.AddReplace(steerPath, "", o.Checkout, ""); err != nil {
			return err
		}
	case version == "":
		return project.Usagef("this steer has no version that a module could require: name a checkout of Steer with --replace")
	}
	if err := mod.AddRequire(steerPath, version); err != nil {
		return err
	}
	mod.Cleanup()
	return nil
}

// tidy completes go.mod and go.sum. The go command works on copies, so that both are
// replaced with the other files, or not at all.
func (c *command) tidy(ctx context.Context) error {
	copied := c.tx.State("tidy.mod")
	sum := strings.TrimSuffix(copied, ".mod") + ".sum"
	for from, to := range map[string]string{modFile: copied, sumFile: sum} {
		text, err := c.read(from)
		if err != nil {
			return err
		}
		if text != nil {
			if err := c.tx.Create(to, text, 0o644); err != nil {
				return err
			}
		}
	}
	command := exec.CommandContext(ctx, "go", "mod", "tidy", "-modfile="+copied)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy: %w: %s; without a network, --fetch-deps=false of init and --make=false of create leave it to you", err, lastLine(out))
	}
	for from, to := range map[string]string{copied: modFile, sum: sumFile} {
		text, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("go mod tidy: %w", err)
		}
		c.pending[to] = text
	}
	return c.flush()
}

// lastLine is the end of what a command printed: the cause, where it prints a chain of
// imports before.
func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
