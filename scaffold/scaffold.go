// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold starts projects and adds to them: the commands steer init, steer
// create and steer delete.
//
// A project is what its author edits, and PROJECT, kubebuilder's file, which lists
// its kinds. Nothing is copied into it that a later version would have to merge: flags,
// logging, probes and the rest of an operator's main are in the library.
//
// Every command changes all of its files or none. What it replaces is kept in .steer/undo
// until it is done, so that the next command restores the files of one that was killed.
// Existing files are overwritten only with Force. Go files that the author edits are
// changed in place: a scheme, a setup, an import; where a file has not the form that is
// looked for, the notes of the report say what to add by hand.
package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/internal/gofile"
	"github.com/steer-dev/steer/scaffold/internal/transaction"
	"github.com/steer-dev/steer/scaffold/project"
)

// command is one run on a project.
type command struct {
	dir   string // absolute
	force bool
	tx    *transaction.Transaction
	// pending are the contents that files get; nil removes one.
	pending map[string][]byte
	made    map[string]bool // of pending: must not overwrite an existing file
	report  project.Report
}

// run runs a command on a folder and completes or undoes it.
func run(dir string, force bool, step func(), act func(c *command) error) (_ *project.Report, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &command{dir: dir, force: force, pending: map[string][]byte{}, made: map[string]bool{}}
	c.report.Restored, err = transaction.Run(dir, step, func(tx *transaction.Transaction) error {
		c.tx = tx
		return act(c)
	})
	if err != nil {
		return nil, err
	}
	for _, list := range [][]string{c.report.Created, c.report.Changed, c.report.Removed} {
		slices.Sort(list)
	}
	return &c.report, nil
}

// Interrupted reports whether a command on a project was interrupted: the next one
// restores the files.
func Interrupted(dir string) bool { return transaction.Interrupted(dir) }

func (c *command) path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

// read returns the content of a file as it will be; nil if there is none.
func (c *command) read(name string) ([]byte, error) {
	if text, ok := c.pending[name]; ok {
		return text, nil
	}
	text, err := os.ReadFile(c.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// create makes a file of a template. An existing one is not overwritten without Force.
func (c *command) create(name, template string, v values) error {
	text, err := fill(template, v)
	if err != nil {
		return err
	}
	return c.createText(name, text)
}

// createText makes a file of a text, to which Go files get the license of the project.
func (c *command) createText(name string, text []byte) error {
	if filepath.Ext(name) == ".go" {
		header, err := c.header()
		if err != nil {
			return err
		}
		s, err := gofile.Parse(name, append([]byte(header), text...))
		if err != nil {
			return err
		}
		if text, err = s.Formatted(); err != nil {
			return err
		}
	}
	c.pending[name], c.made[name] = text, true
	return nil
}

// edit changes a Go file in place.
func (c *command) edit(name string, change func(s *gofile.File) error) error {
	text, err := c.read(name)
	if err != nil {
		return err
	}
	s, err := gofile.Parse(name, text)
	if err != nil {
		return err
	}
	if err := change(s); err != nil {
		return err
	}
	if c.pending[name], err = s.Formatted(); err != nil {
		return fmt.Errorf("format %s: %w", name, err)
	}
	return nil
}

// note adds what is left to do by hand.
func (c *command) note(format string, args ...any) {
	c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
}

// flush writes the pending files.
func (c *command) flush() error {
	var changes []generate.Change
	var exist []string
	for name, after := range c.pending {
		before, err := os.ReadFile(c.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if before == nil && after == nil || before != nil && after != nil && string(before) == string(after) {
			continue
		}
		if before != nil && c.made[name] {
			exist = append(exist, name)
		}
		changes = append(changes, generate.Change{Path: c.path(name), Before: before, After: after})
	}
	if len(exist) > 0 && !c.force {
		slices.Sort(exist)
		return &ExistError{Paths: exist, Reason: "files with other contents exist"}
	}
	clear(c.pending)
	clear(c.made)
	return c.apply(changes)
}

// apply writes changes and reports them.
func (c *command) apply(changes []generate.Change) error {
	project := c.path(project.File) // last, since it says what there is
	slices.SortFunc(changes, func(a, b generate.Change) int {
		switch project {
		case a.Path:
			return 1
		case b.Path:
			return -1
		}
		return strings.Compare(a.Path, b.Path)
	})
	if err := c.tx.Write(changes); err != nil {
		return err
	}
	for _, change := range changes {
		name, err := filepath.Rel(c.dir, change.Path)
		if err != nil {
			return err
		}
		list := &c.report.Changed
		switch {
		case change.After == nil:
			list = &c.report.Removed
		case change.Before == nil:
			list = &c.report.Created
		}
		if name = filepath.ToSlash(name); !slices.Contains(c.report.Created, name) && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	return nil
}

// generate brings what is generated up to date, and with prune removes generated files
// that nothing asks for any more.
func (c *command) generate(ctx context.Context, prune bool) error {
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return err
	}
	request.Dir = c.dir
	result, err := generate.Run(ctx, request)
	if err != nil {
		return err
	}
	changes, err := result.Changes()
	if err != nil {
		return err
	}
	if prune {
		stale, err := result.Stale()
		if err != nil {
			return err
		}
		changes = append(changes, stale...)
	}
	return c.apply(changes)
}

// header is the licence of the project's Go files; empty if it has none.
func (c *command) header() (string, error) {
	text, err := c.read(headerFile)
	if err != nil || text == nil {
		return "", err
	}
	return string(text) + "\n", nil
}
