// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every new directory is synced in its parent before the next one is created in it.
func TestMkdirAllFlushesEveryNameThatItMakes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, "a", "b")
	var got []string
	record := func(dir string) error {
		_, a := os.Stat(filepath.Join(root, "a"))
		_, b := os.Stat(path)
		got = append(got, fmt.Sprint(dir, " ", a == nil, b == nil))
		return nil
	}
	made := []string{
		filepath.Dir(root) + " false false", root + " true false", filepath.Join(root, "a") + " true true",
	}
	if err := mkdirAll(path, 0o700, record); err != nil || !slices.Equal(got, made) {
		t.Errorf("flushed %q, %v, want %q", got, err, made)
	}
	got = nil
	if err := mkdirAll(path, 0o700, record); err != nil || !slices.Equal(got, made[2:]) {
		t.Errorf("where it exists: flushed %q, %v, want %q", got, err, made[2:])
	}
	for _, dir := range []string{filepath.Dir(path), path} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	failure := errors.New("disk")
	if err := mkdirAll(filepath.Join(path, "c"), 0o700, func(string) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got error %v, want that of the flush", err)
	}
	if err := mkdirAll(path, 0o700, func(string) error { return fs.ErrPermission }); err != nil {
		t.Errorf("in a parent that may not be read: %v", err)
	}
}

func TestMkdirAllNamesWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "a")} {
		if err := MkdirAll(path, 0o700); err == nil {
			t.Errorf("made %s", path)
		}
	}
}

func TestReplaceKeepsTheOldFileUntilTheNewOneIsWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("half")
	err := Replace(path, 0o600, func(w io.Writer) error {
		if _, err := io.WriteString(w, "ne"); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got error %v, want that of the writer", err)
	}
	wantFile(t, path, "old", 0o600)
	if err := WriteFile(path, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "new", 0o640)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "new", 0o600)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file with the same contents was replaced: %v", err)
	}
}

// wantFile checks a file, and that it is alone in its directory.
func wantFile(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil || string(content) != want {
		t.Errorf("found %q, %v, want %q", content, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("found mode %v, %v, want %v", info.Mode(), err, mode)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("found %v, %v beside it", all, err)
	}
}
