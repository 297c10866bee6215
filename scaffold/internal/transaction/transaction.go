// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transaction changes files of a project, all or none, for one command at a time.
package transaction

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
	"github.com/steer-dev/steer/scaffold/project"
)

const (
	// UndoDir in [project.StateDir] holds the transaction that is under way.
	UndoDir = "undo"
	journal = "journal.json"
)

// Transaction changes files of a project, all or none. Before it writes a file it
// keeps the old content in .steer/undo. Where the process ends before the transaction
// does, the next [Run] restores the files. It is not for concurrent use.
//
// The project may be that of a stranger, with links and with a journal that no command wrote:
// nothing outside its folder is read, written or removed, and a journal changes nothing
// through a link, nor in .git, whose files are programs and settings of the user.
type Transaction struct {
	dir     string   // of the project; absolute
	root    *os.Root // the same
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

// ErrBusy is wrapped by the error of [Run] while another command changes the project.
var ErrBusy = errors.New("another steer command is changing this project: wait until it has ended")

// Run undoes what an interrupted transaction left in a folder, then calls act with a new
// one, which it completes if act succeeds, and undoes otherwise. restored is how many
// files of the interrupted one it restored. step is called before each change of the disk;
// nil: nothing is.
func Run(dir string, step func(), act func(*Transaction) error) (restored int, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	t, restored, err := begin(dir, root, step)
	if err != nil {
		return 0, err
	}
	return restored, t.end(act(t))
}

// begin undoes what an interrupted transaction left, and starts one. undone is how
// many files it restored.
func begin(dir string, root *os.Root, step func()) (t *Transaction, undone int, err error) {
	t = &Transaction{dir: dir, root: root, step: step}
	text, err := root.ReadFile(state(journal))
	switch {
	case errors.Is(err, fs.ErrNotExist): // nothing was changed
		return t, 0, t.forget()
	case err != nil:
		return nil, 0, err
	}
	var left record
	if err := json.Unmarshal(text, &left); err != nil {
		return nil, 0, fmt.Errorf("%s: %w; remove %s to keep the files as they are", t.State(journal), err, t.State(""))
	}
	if err := left.check(root); err != nil {
		return nil, 0, fmt.Errorf("%s: %w; remove %s to keep the files as they are", t.State(journal), err, t.State(""))
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
	_, err := os.Stat(filepath.Join(dir, project.StateDir, UndoDir, journal))
	return err == nil
}

// State is the path of a file beside what is kept; it is removed with the transaction.
func (t *Transaction) State(name string) string { return filepath.Join(t.dir, state(name)) }

// state is State below the project.
func state(name string) string { return filepath.Join(project.StateDir, UndoDir, name) }

// relative returns a path below the project.
func (t *Transaction) relative(path string) (string, error) {
	relative, err := filepath.Rel(t.dir, path)
	if err == nil && !filepath.IsLocal(relative) {
		err = fmt.Errorf("%s is not in the project %s", path, t.dir)
	}
	return relative, err
}

// end completes the transaction: with an error it restores all files first.
func (t *Transaction) end(err error) error {
	if err != nil {
		return errors.Join(err, t.rollback())
	}
	return t.forget()
}

// Write makes changes. It may be called several times.
func (t *Transaction) Write(changes []generate.Change) error {
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
		t.dirs = append(t.dirs, t.missing(filepath.Dir(filepath.FromSlash(entry.Path)))...)
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
func (t *Transaction) keep(change generate.Change) (undo, error) {
	relative, err := t.relative(change.Path)
	if err != nil {
		return undo{}, err
	}
	entry := undo{Path: filepath.ToSlash(relative), After: []string{Hash(change.After)}}
	info, err := t.root.Stat(relative)
	if errors.Is(err, fs.ErrNotExist) {
		return entry, nil
	}
	if err != nil {
		return undo{}, err
	}
	before, err := t.root.ReadFile(relative)
	if err != nil {
		return undo{}, err
	}
	entry.Before, entry.Mode = strconv.Itoa(len(t.entries))+"-"+Hash(before)[:8], info.Mode().Perm()
	return entry, t.create(state(entry.Before), before, entry.Mode)
}

// missing are the folders from one on upwards that are not there, parents first.
func (t *Transaction) missing(dir string) []string {
	var out []string
	for ; dir != "."; dir = filepath.Dir(dir) {
		if _, err := t.root.Stat(dir); err == nil || slices.Contains(t.dirs, filepath.ToSlash(dir)) {
			break
		}
		out = append(out, filepath.ToSlash(dir))
	}
	slices.Reverse(out)
	return out
}

// log makes the journal say what has been kept.
func (t *Transaction) log() error {
	text, err := json.Marshal(record{Files: t.entries, Dirs: t.dirs})
	if err != nil {
		return err
	}
	if err := t.create(state("new-journal"), text, 0o644); err != nil {
		return err
	}
	return t.do(func() error { return t.root.Rename(state("new-journal"), state(journal)) })
}

// replace puts the new content of a file in its place, or removes it with the folders
// that are empty then.
func (t *Transaction) replace(change generate.Change, i int) error {
	path, err := t.relative(change.Path)
	if err != nil {
		return err
	}
	if change.After == nil {
		if err := t.do(func() error { return t.root.Remove(path) }); err != nil {
			return err
		}
		return t.removeEmpty(filepath.Dir(path))
	}
	mode := fs.FileMode(0o644)
	if info, err := t.root.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	staged := state("new-" + strconv.Itoa(i))
	if err := t.create(staged, change.After, mode); err != nil {
		return err
	}
	return t.move(staged, path)
}

// move renames a file, into a folder that it makes.
func (t *Transaction) move(from, to string) error {
	if err := t.do(func() error { return t.root.MkdirAll(filepath.Dir(to), 0o755) }); err != nil {
		return err
	}
	return t.do(func() error { return t.root.Rename(from, to) })
}

// removeEmpty removes a folder, and those above it, as far as they are empty.
func (t *Transaction) removeEmpty(dir string) error {
	for ; dir != "."; dir = filepath.Dir(dir) {
		entries, err := t.list(dir)
		if err != nil || len(entries) > 0 {
			return err
		}
		if err := t.do(func() error { return t.root.Remove(dir) }); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transaction) list(dir string) ([]fs.DirEntry, error) {
	return fs.ReadDir(t.root.FS(), filepath.ToSlash(dir))
}

// rollback restores all files, in the reverse order. Nothing is restored if one has
// a content that is neither the old one nor one that it was given.
func (t *Transaction) rollback() error {
	for _, entry := range t.entries {
		now, err := t.root.ReadFile(filepath.FromSlash(entry.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !slices.Contains(entry.After, Hash(now)) && !t.isBefore(entry, now) {
			return fmt.Errorf("an earlier run was interrupted, and %s was changed since: remove %s to keep all files as they are, or restore that one", entry.Path, t.State(""))
		}
	}
	for _, entry := range slices.Backward(t.entries) {
		if err := t.restore(entry); err != nil {
			return fmt.Errorf("restore %s: %w", entry.Path, err)
		}
	}
	for _, dir := range slices.Backward(t.dirs) {
		entries, err := t.list(dir)
		if errors.Is(err, fs.ErrNotExist) || len(entries) > 0 { // another program's file is in it
			continue
		}
		if err := t.do(func() error { return t.root.Remove(filepath.FromSlash(dir)) }); err != nil {
			return err
		}
	}
	t.entries, t.dirs = nil, nil
	return t.forget()
}

func (t *Transaction) isBefore(entry undo, now []byte) bool {
	if entry.Before == "" {
		return now == nil
	}
	before, err := t.root.ReadFile(state(entry.Before))
	return err == nil && now != nil && bytes.Equal(before, now)
}

func (t *Transaction) restore(entry undo) error {
	path := filepath.FromSlash(entry.Path)
	if entry.Before == "" {
		err := t.do(func() error { return t.root.Remove(path) })
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	before, err := t.root.ReadFile(state(entry.Before))
	if err != nil {
		return err
	}
	if err := t.create(state("old"), before, entry.Mode); err != nil {
		return err
	}
	return t.move(state("old"), path)
}

// forget removes what is kept. The journal goes first: without it nothing is undone.
func (t *Transaction) forget() error {
	if err := t.do(func() error { return t.root.Remove(state(journal)) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.do(func() error { return t.root.RemoveAll(state("")) }); err != nil {
		return err
	}
	_ = t.root.Remove(project.StateDir) // if nothing else is in it
	return nil
}

// Create writes a file whose path is one of [Transaction.State].
func (t *Transaction) Create(path string, data []byte, mode fs.FileMode) error {
	relative, err := t.relative(path)
	if err != nil {
		return err
	}
	return t.create(relative, data, mode)
}

func (t *Transaction) create(path string, data []byte, mode fs.FileMode) error {
	if err := t.do(func() error { return t.root.MkdirAll(filepath.Dir(path), 0o755) }); err != nil {
		return err
	}
	return t.do(func() error {
		file, err := t.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		return errors.Join(err, file.Chmod(mode), file.Close())
	})
}

// do makes one change on disk.
func (t *Transaction) do(change func() error) error {
	if t.step != nil {
		t.step()
	}
	return change()
}

// Hash of a file's content; empty for none.
func Hash(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
