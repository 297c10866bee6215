// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Change is a file whose content is not what the generators made.
type Change struct {
	Path          string
	Before, After []byte // Before is nil for a new file, After for one to remove
}

// Changes compares the files with what lies on disk.
func (r *Result) Changes() ([]Change, error) {
	var changes []Change
	var failed []error
	for _, file := range r.Files {
		if file.Path == "" {
			continue
		}
		before, err := os.ReadFile(file.Path)
		if err != nil && !os.IsNotExist(err) {
			failed = append(failed, err)
			continue
		}
		if err != nil || !bytes.Equal(before, file.Data) {
			changes = append(changes, Change{Path: file.Path, Before: before, After: file.Data})
		}
	}
	return changes, errors.Join(failed...)
}

// Print writes what goes to standard output.
func (r *Result) Print(w io.Writer) error {
	for _, file := range r.Files {
		if file.Path == "" {
			if _, err := w.Write(file.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// Apply puts changes on disk, all or none: new contents are written beside the
// files and only then put in their places, and if that fails half-way the files
// already replaced are put back. A process that is killed meanwhile leaves every file with
// its old or its new content; what it wrote beside them, the next Apply removes.
func Apply(changes []Change) error {
	return (&writer{pid: os.Getpid(), step: func() {}}).apply(changes)
}

// writer puts changes on disk.
type writer struct {
	pid int // of the process, in the names of files that are beside others
	// step is called before each change of the disk; for tests.
	step   func()
	staged []string // by change; empty where nothing is staged
	dirs   []string // that were made, parents first
}

func (w *writer) apply(changes []Change) (err error) {
	w.staged = make([]string, len(changes))
	done := 0
	defer func() {
		if err != nil {
			err = errors.Join(err, w.restore(changes[:done]))
		}
	}()
	for i, change := range changes {
		if change.After == nil {
			continue
		}
		if w.staged[i], err = w.stage(change.Path, change.After); err != nil {
			return fmt.Errorf("write %s: %w", change.Path, err)
		}
	}
	for i, change := range changes {
		w.step()
		if change.After == nil {
			err = os.Remove(change.Path)
		} else if err = os.Rename(w.staged[i], change.Path); err == nil {
			w.staged[i] = ""
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", change.Path, err)
		}
		done++
	}
	return nil
}

// restore removes what is staged, puts replaced files back, and removes folders that were
// made for them.
func (w *writer) restore(done []Change) (err error) {
	for _, staged := range w.staged {
		if staged != "" {
			_ = os.Remove(staged) // nothing was replaced by it
		}
	}
	for _, change := range done {
		err = errors.Join(err, change.undo())
	}
	for _, dir := range slices.Backward(w.dirs) {
		_ = os.Remove(dir) // unless something else is in it
	}
	return err
}

// stage writes a file's new content beside it.
func (w *writer) stage(path string, data []byte) (string, error) {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return "", errors.New("is a directory")
		}
		mode = info.Mode().Perm()
	}
	if err := w.prepare(path); err != nil {
		return "", err
	}
	w.step()
	temp, err := os.CreateTemp(filepath.Dir(path), stagedPrefix(path)+strconv.Itoa(w.pid)+"-*")
	if err != nil {
		return "", err
	}
	w.step()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Close())
	if err != nil {
		_ = os.Remove(temp.Name()) // the error before it counts
		return "", err
	}
	return temp.Name(), nil
}

// stagedPrefix begins the names of files that are to take the place of a file. The number
// of the process follows.
func stagedPrefix(path string) string { return "." + filepath.Base(path) + ".steer-" }

// prepare makes the folder of a file, and removes from it what processes left that were
// killed while they wrote the file.
func (w *writer) prepare(path string) error {
	folder := filepath.Dir(path)
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		w.dirs = slices.Insert(w.dirs, 0, dir)
	}
	slices.SortStableFunc(w.dirs, func(a, b string) int { return len(a) - len(b) })
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), stagedPrefix(path))
		text, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(text)
		if !ok || err != nil || runs(pid) {
			continue
		}
		w.step()
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// runs reports whether a process is there, as far as the system says so.
func runs(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }() // only memory
	return runtime.GOOS == "windows" || !errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func (c Change) undo() error {
	if c.Before == nil {
		return os.Remove(c.Path)
	}
	return os.WriteFile(c.Path, c.Before, 0o644)
}
