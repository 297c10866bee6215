// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate"
)

// files are the contents of the files below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestGenerateIsCompletedAfterAKill kills a run that replaces, makes and removes files at
// each of its changes of the disk. Every file has its old or its new content then, and the
// next run makes the tree what one run would have made it.
func TestGenerateIsCompletedAfterAKill(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	cache := t.TempDir()
	prune := func() (*generate.Request, *generate.Result, []generate.Change) {
		t.Helper()
		r := request(t, dir, generate.Steer)
		r.Cache = cache
		result := run(t, dir)
		changes, err := result.Changes()
		if err != nil {
			t.Fatal(err)
		}
		stale, err := result.Stale()
		if err != nil {
			t.Fatal(err)
		}
		return r, result, append(changes, stale...)
	}
	r, result, changes := prune()
	if err := generate.Apply(changes); err != nil {
		t.Fatal(err)
	}
	r.Remember(result)

	// One kind is new, one is gone, and one is another.
	source := filepath.Join(dir, "api/v1/types.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.ReplaceAll(string(text), "Thing", "Other") + "\n// Third is a kind.\ntype Third struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n}\n"
	if err := os.WriteFile(source, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	_, _, changes = prune()
	want := maps.Clone(before)
	for _, change := range changes {
		if want[change.Path] = string(change.After); change.After == nil {
			delete(want, change.Path)
		}
	}
	for n := 0; ; n++ {
		killed, err := generate.ApplyKilledAt(n, changes)
		if err != nil {
			t.Fatal(err)
		}
		if !killed {
			if n < 3*len(changes)-2 || len(changes) < 4 {
				t.Errorf("%d changes were made of the disk for %d files", n, len(changes))
			}
			break
		}
		for path, text := range files(t, dir) {
			if !strings.Contains(filepath.Base(path), ".steer-") && text != before[path] && text != want[path] {
				t.Errorf("killed at change %d, %s has neither its old nor its new content:\n%s", n, path, text)
			}
		}
		next, _, left := prune()
		if next.Unchanged() {
			t.Errorf("killed at change %d, the next run takes the files for those of a whole one", n)
		}
		if err := generate.Apply(left); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, files(t, dir)); diff != "" {
			t.Fatalf("killed at change %d, the next run leaves (-want +got):\n%s", n, diff)
		}
		for path := range want {
			if _, ok := before[path]; !ok {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		for path, text := range before {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAFileIsOldOrNewAfterAKill writes one file into a folder that is made for it, as steer
// package yaml does, and replaces it.
func TestAFileIsOldOrNewAfterAKill(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"a new file": "", "an existing file": "old"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				dir := t.TempDir()
				change := generate.Change{Path: filepath.Join(dir, "dist", "install.yaml"), After: []byte("new")}
				was := map[string]string{}
				if before != "" {
					change.Before = []byte(before)
					was[change.Path] = before
					edit(t, change.Path, before)
				}
				killed, err := generate.ApplyKilledAt(n, []generate.Change{change})
				if err != nil {
					t.Fatal(err)
				}
				if !killed {
					if n < 3 {
						t.Errorf("%d changes were made of the disk", n)
					}
					return
				}
				now := files(t, dir)
				maps.DeleteFunc(now, func(path, _ string) bool { return strings.Contains(filepath.Base(path), ".steer-") })
				if diff := cmp.Diff(was, now); diff != "" {
					t.Errorf("killed at change %d (-want +got):\n%s", n, diff)
				}
				if err := generate.Apply([]generate.Change{change}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string]string{change.Path: "new"}, files(t, dir)); diff != "" {
					t.Errorf("killed at change %d, the next run leaves (-want +got):\n%s", n, diff)
				}
			}
		})
	}
}
