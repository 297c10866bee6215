// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adopt lets an operator project of kubebuilder or operator-sdk use Steer in
// place of controller-gen and of the programs that envtest starts, and reports what a
// move to Steer's runtime would need: the command steer adopt.
//
// It changes the recipes of the Makefile that install these tools, and those that it
// does not understand it leaves and names. [Undo] restores them.
package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/internal/transaction"
	"github.com/steer-dev/steer/scaffold/project"
)

const makefileName = "Makefile"

// Options of [Adopt].
type Options struct {
	// Dir is the folder of the project. Default: the working directory.
	Dir string
	// Steer is the version of Steer to install, such as v1.2.0. One of Steer and Checkout
	// is required.
	Steer string
	// Checkout is a folder with Steer's sources to build in place of a version.
	Checkout string

	step func()
}

// Result is what a command has done, and what is left.
type Result struct {
	// Changed is whether the Makefile was changed.
	Changed bool
	// Replaced are the places of the Makefile where Steer is now installed, Left those
	// that mention a tool in a form that is not known: FILE:LINE: TEXT.
	Replaced, Left []string
	// Restored is how many files were first restored to what they were before an
	// earlier command that was interrupted.
	Restored int
}

// Adopt points the Makefile of a project at Steer. Again, with another version of
// Steer, it replaces that.
func Adopt(o Options) (*Result, error) {
	return change(o.Dir, o.step, func(dir, text string) (string, *Result, error) {
		m, err := o.makefile(dir, text)
		if err != nil {
			return "", nil, err
		}
		return m.text, m.result(), m.check(dir)
	})
}

// makefile is the Makefile of a folder with Steer in it.
func (o *Options) makefile(dir, text string) (*makefile, error) {
	if _, err := readProject(dir); err != nil {
		return nil, err
	}
	version, install := o.Steer, `GOBIN="$(abspath $(dir $(1)))" GOFLAGS= go install github.com/steer-dev/steer/cmd/steer@$(STEER_VERSION)`
	switch {
	case o.Checkout != "":
		// Remove bin/steer-checkout after a change there.
		version, install = "checkout", `GOFLAGS=-buildvcs=false go build -C "`+filepath.ToSlash(o.Checkout)+`" -o "$(abspath $(dir $(1)))/steer" ./cmd/steer`
	case version == "":
		return nil, project.Usagef("this steer has no version that could be installed: name a checkout of Steer with --replace")
	}
	m, err := adoptMakefile(text, version, install)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// check refuses a Makefile in which nothing was replaced.
func (m *makefile) check(dir string) error {
	if len(m.replaced) > 0 {
		return nil
	}
	return project.Usagef("%s has no recipe of a known form that installs %s or %s: nothing to replace%s",
		filepath.Join(dir, makefileName), filepath.Base(controllerGen), filepath.Base(setupEnvtest), strings.Join(append([]string{""}, places(m.left)...), "; left: "))
}

func (m *makefile) result() *Result {
	return &Result{Replaced: places(m.replaced), Left: places(m.left)}
}

func places(list []finding) (out []string) {
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s:%d: %s", makefileName, f.line, f.text))
	}
	return out
}

// Undo restores the Makefile, with the edits that were made since, and removes what
// its recipes installed.
func Undo(dir string) (*Result, error) { return undo(dir, nil) }

func undo(dir string, step func()) (*Result, error) {
	var files []string
	result, err := change(dir, step, func(dir, text string) (string, *Result, error) {
		if !adopted(text) {
			return "", nil, project.Usagef("%s has no changes of steer adopt", filepath.Join(dir, makefileName))
		}
		before, err := restoreMakefile(text)
		if err != nil {
			return "", nil, err
		}
		if m, err := adoptMakefile(before, "x", "x"); err == nil {
			for _, tool := range m.tools {
				if file, ok := evaluate(before, dir, tool); ok {
					files = append(files, file)
				}
			}
		}
		return before, &Result{}, nil
	})
	if err != nil {
		return nil, err
	}
	return result, removeInstalled(files)
}

// change changes the Makefile of a project.
func change(dir string, step func(), by func(dir, text string) (string, *Result, error)) (*Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var result *Result
	restored, err := transaction.Run(dir, step, func(tx *transaction.Transaction) error {
		file := filepath.Join(dir, makefileName)
		before, err := readMakefile(file)
		if err != nil {
			return err
		}
		after, done, err := by(dir, before)
		if err != nil {
			return err
		}
		result = done
		if result.Changed = after != before; !result.Changed {
			return nil
		}
		return tx.Write([]generate.Change{{Path: file, Before: []byte(before), After: []byte(after)}})
	})
	if err != nil {
		return nil, err
	}
	result.Restored = restored
	return result, nil
}

func readMakefile(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", project.Usagef("there is no %s: run this in the folder of a project of kubebuilder or operator-sdk", file)
	}
	return string(text), err
}

// readProject reads PROJECT, and refuses layouts that are not known.
func readProject(dir string) (*project.Project, error) {
	p, err := project.ReadAny(dir)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.Layout, func(plugin string) bool {
		return strings.HasPrefix(plugin, "go.kubebuilder.io/v3") || strings.HasPrefix(plugin, "go.kubebuilder.io/v4")
	}) {
		return nil, project.Usagef("%s has the layout %s, and steer adopt knows go.kubebuilder.io/v3 and v4", filepath.Join(dir, project.File), cmp.Or(strings.Join(p.Layout, ","), `""`))
	}
	return p, nil
}
