// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/steer-dev/steer/generate"
)

const (
	// stateDir is the folder of a project for what is not part of it.
	stateDir = ".steer"
	// undoDir in it holds the transaction that is under way.
	undoDir = "undo"
	journal = "journal.json"
)

// transaction changes files of a project, all or none. Before it writes a file it
// keeps the old content in .steer/undo. Where the process ends before [transaction.end],
// the next [begin] restores the files.
//
// It is not for concurrent use, and two of one project must not run at once.
type transaction struct {
	dir     string // of the project; absolute
	entries []undo
	dirs    []string // that were made, parents first
	// step is called before each change of a file or folder; for tests.
	step func()
}

// undo restores one file.
type undo struct {
	Path string `json:"path"` // relative to the project, with slashes
	// Before is the file in .steer/undo with the old content; empty: there was none.
	Before string      `json:"before,omitempty"`
	Mode   fs.FileMode `json:"mode,omitempty"`
	// After are the hashes of the contents that it is given; "": it is removed.
	After []string `json:"after"`
}

// record is the content of the journal.
type record struct {
	Files []undo   `json:"files"`
	Dirs  []string `json:"dirs"`
}

// begin undoes what an interrupted transaction left, and starts one. undone is how
// many files it restored.
func begin(dir string, step func()) (t *transaction, undone int, err error) {
	t = &transaction{dir: dir, step: step}
	text, err := os.ReadFile(t.state(journal))
	switch {
	case errors.Is(err, fs.ErrNotExist): // nothing was changed
		return t, 0, t.forget()
	case err != nil:
		return nil, 0, err
	}
	var left record
	if err := json.Unmarshal(text, &left); err != nil {
		return nil, 0, fmt.Errorf("%s: %w; remove %s to keep the files as they are", t.state(journal), err, t.state(""))
	}
	t.entries, t.dirs = left.Files, left.Dirs
	undone = len(t.entries)
	if err := t.rollback(); err != nil {
		return nil, 0, err
	}
	return t, undone, nil
}

// Interrupted reports whether a command on a project was interrupted: the next one
// restores the files.
func Interrupted(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stateDir, undoDir, journal))
	return err == nil
}

// state is the path of a file of the transaction.
func (t *transaction) state(name string) string { return filepath.Join(t.dir, stateDir, undoDir, name) }

// end completes the transaction: with an error it restores all files first.
func (t *transaction) end(err error) error {
	if err != nil {
		return errors.Join(err, t.rollback())
	}
	return t.forget()
}

// write makes changes. It may be called several times.
func (t *transaction) write(changes []generate.Change) error {
	for _, change := range changes {
		entry, err := t.keep(change)
		if err != nil {
			return err
		}
		// The first content counts if a file is changed twice.
		if i := slices.IndexFunc(t.entries, func(u undo) bool { return u.Path == entry.Path }); i >= 0 {
			t.entries[i].After = append(t.entries[i].After, entry.After...)
		} else {
			t.entries = append(t.entries, entry)
		}
		t.dirs = append(t.dirs, t.missing(filepath.Dir(change.Path))...)
	}
	if err := t.log(); err != nil {
		return err
	}
	for i, change := range changes {
		if err := t.replace(change, i); err != nil {
			return err
		}
	}
	return nil
}

// keep copies what a change replaces.
func (t *transaction) keep(change generate.Change) (undo, error) {
	relative, err := filepath.Rel(t.dir, change.Path)
	if err != nil {
		return undo{}, err
	}
	entry := undo{Path: filepath.ToSlash(relative), After: []string{hash(change.After)}}
	info, err := os.Stat(change.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return entry, nil
	}
	if err != nil {
		return undo{}, err
	}
	before, err := os.ReadFile(change.Path)
	if err != nil {
		return undo{}, err
	}
	entry.Before, entry.Mode = strconv.Itoa(len(t.entries))+"-"+hash(before)[:8], info.Mode().Perm()
	return entry, t.create(t.state(entry.Before), before, entry.Mode)
}

// missing are the parents of a file that are not there, parents first.
func (t *transaction) missing(dir string) []string {
	var out []string
	for ; dir != t.dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		relative, err := filepath.Rel(t.dir, dir)
		if err != nil || slices.Contains(t.dirs, filepath.ToSlash(relative)) {
			break
		}
		out = append(out, filepath.ToSlash(relative))
	}
	slices.Reverse(out)
	return out
}

// log makes the journal say what has been kept.
func (t *transaction) log() error {
	text, err := json.Marshal(record{Files: t.entries, Dirs: t.dirs})
	if err != nil {
		return err
	}
	if err := t.create(t.state("new-journal"), text, 0o644); err != nil {
		return err
	}
	return t.do(func() error { return os.Rename(t.state("new-journal"), t.state(journal)) })
}

// replace puts the new content of a file in its place, or removes it with the folders
// that are empty then.
func (t *transaction) replace(change generate.Change, i int) error {
	if change.After == nil {
		if err := t.do(func() error { return os.Remove(change.Path) }); err != nil {
			return err
		}
		return t.removeEmpty(filepath.Dir(change.Path))
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(change.Path); err == nil {
		mode = info.Mode().Perm()
	}
	staged := t.state("new-" + strconv.Itoa(i))
	if err := t.create(staged, change.After, mode); err != nil {
		return err
	}
	if err := t.do(func() error { return os.MkdirAll(filepath.Dir(change.Path), 0o755) }); err != nil {
		return err
	}
	return t.do(func() error { return os.Rename(staged, change.Path) })
}

// removeEmpty removes a folder, and those above it, as far as they are empty.
func (t *transaction) removeEmpty(dir string) error {
	for ; dir != t.dir; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			return err
		}
		if err := t.do(func() error { return os.Remove(dir) }); err != nil {
			return err
		}
	}
	return nil
}

// rollback restores all files, in the reverse order. Nothing is restored if one has
// a content that is neither the old one nor one that it was given.
func (t *transaction) rollback() error {
	for _, entry := range t.entries {
		now, err := os.ReadFile(t.file(entry.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !slices.Contains(entry.After, hash(now)) && !t.isBefore(entry, now) {
			return fmt.Errorf("an earlier run was interrupted, and %s was changed since: remove %s to keep all files as they are, or restore that one", entry.Path, t.state(""))
		}
	}
	for _, entry := range slices.Backward(t.entries) {
		if err := t.restore(entry); err != nil {
			return fmt.Errorf("restore %s: %w", entry.Path, err)
		}
	}
	for _, dir := range slices.Backward(t.dirs) {
		if err := t.do(func() error { return os.Remove(t.file(dir)) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	t.entries, t.dirs = nil, nil
	return t.forget()
}

func (t *transaction) file(relative string) string {
	return filepath.Join(t.dir, filepath.FromSlash(relative))
}

func (t *transaction) isBefore(entry undo, now []byte) bool {
	if entry.Before == "" {
		return now == nil
	}
	before, err := os.ReadFile(t.state(entry.Before))
	return err == nil && now != nil && bytes.Equal(before, now)
}

func (t *transaction) restore(entry undo) error {
	if entry.Before == "" {
		err := t.do(func() error { return os.Remove(t.file(entry.Path)) })
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	before, err := os.ReadFile(t.state(entry.Before))
	if err != nil {
		return err
	}
	if err := t.create(t.state("old"), before, entry.Mode); err != nil {
		return err
	}
	if err := t.do(func() error { return os.MkdirAll(filepath.Dir(t.file(entry.Path)), 0o755) }); err != nil {
		return err
	}
	return t.do(func() error { return os.Rename(t.state("old"), t.file(entry.Path)) })
}

// forget removes what is kept. The journal goes first: without it nothing is undone.
func (t *transaction) forget() error {
	if err := t.do(func() error { return os.Remove(t.state(journal)) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.do(func() error { return os.RemoveAll(t.state("")) }); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(t.dir, stateDir)) // if nothing else is in it
	return nil
}

// create writes a file of the transaction.
func (t *transaction) create(path string, data []byte, mode fs.FileMode) error {
	if err := t.do(func() error { return os.MkdirAll(filepath.Dir(path), 0o755) }); err != nil {
		return err
	}
	return t.do(func() error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		return errors.Join(err, file.Chmod(mode), file.Close())
	})
}

// do makes one change on disk.
func (t *transaction) do(change func() error) error {
	if t.step != nil {
		t.step()
	}
	return change()
}

// hash of a file's content; empty for none.
func hash(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
