// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
// already replaced are put back.
func Apply(changes []Change) (err error) {
	staged := make([]string, len(changes))
	done := 0
	defer func() {
		for _, temp := range staged {
			if temp != "" {
				_ = os.Remove(temp) // nothing was replaced
			}
		}
		if err != nil {
			for _, change := range changes[:done] {
				err = errors.Join(err, change.undo())
			}
		}
	}()
	for i, change := range changes {
		if change.After == nil {
			continue
		}
		if staged[i], err = stage(change.Path, change.After); err != nil {
			return fmt.Errorf("write %s: %w", change.Path, err)
		}
	}
	for i, change := range changes {
		if change.After == nil {
			err = os.Remove(change.Path)
		} else if err = os.Rename(staged[i], change.Path); err == nil {
			staged[i] = ""
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", change.Path, err)
		}
		done++
	}
	return nil
}

// stage writes a file's new content beside it.
func stage(path string, data []byte) (string, error) {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return "", errors.New("is a directory")
		}
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Close())
	if err != nil {
		_ = os.Remove(temp.Name()) // the error before it counts
		return "", err
	}
	return temp.Name(), nil
}

func (c Change) undo() error {
	if c.Before == nil {
		return os.Remove(c.Path)
	}
	return os.WriteFile(c.Path, c.Before, 0o644)
}
