// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package transaction

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/project"
)

// stranger makes a folder with the home of a user, which has a file, and in it a repository with
// a journal, links out of it and into its .git.
func stranger(t testing.TB, journalText string) (home, repository string) {
	t.Helper()
	home = t.TempDir()
	repository = filepath.Join(home, "repository")
	for name, text := range map[string]string{
		"secret":                            "s",
		"keys/id":                           "k",
		"repository/file":                   "f",
		"repository/.git/config":            "g",
		"repository/.steer/undo/0-before":   "hostile",
		"repository/.steer/undo/" + journal: journalText,
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": "../keys", "in": ".git", ".steer/undo/1-before": "../../../secret"} {
		if err := os.Symlink(filepath.FromSlash(to), filepath.Join(repository, filepath.FromSlash(name))); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
	}
	return home, repository
}

// outside returns what a journal must not change: all but the repository, and its .git.
func outside(t testing.TB, home string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(home, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || name == "." || name == "repository":
			return err
		case strings.HasPrefix(name, "repository/") && !strings.HasPrefix(name, "repository/.git"):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			out[name] = "a folder"
			return nil
		}
		text, err := os.ReadFile(path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hostile are journals that no command writes.
func hostile() map[string]record {
	absent, known := []string{""}, []string{"", Hash([]byte("s")), Hash([]byte("k")), Hash([]byte("g"))}
	return map[string]record{
		"writes outside":            {Files: []undo{{Path: "../evil", Before: "0-before", Mode: 0o755, After: absent}}},
		"replaces outside":          {Files: []undo{{Path: "../secret", Before: "0-before", Mode: 0o755, After: known}}},
		"removes outside":           {Files: []undo{{Path: "../secret", After: known}}},
		"copies in":                 {Files: []undo{{Path: "stolen", Before: "../../../secret", Mode: 0o644, After: absent}}},
		"copies in by a link":       {Files: []undo{{Path: "stolen", Before: "1-before", Mode: 0o644, After: absent}}},
		"writes through a link":     {Files: []undo{{Path: "out/evil", Before: "0-before", Mode: 0o755, After: absent}}},
		"removes through a link":    {Files: []undo{{Path: "out/id", After: known}}},
		"replaces the settings":     {Files: []undo{{Path: ".git/config", Before: "0-before", Mode: 0o644, After: known}}},
		"adds a hook":               {Files: []undo{{Path: ".git/hooks/pre-commit", Before: "0-before", Mode: 0o755, After: absent}}},
		"adds a hook in capitals":   {Files: []undo{{Path: ".GIT/hooks/pre-commit", Before: "0-before", Mode: 0o755, After: absent}}}, // some file systems know no case
		"adds a hook by a link":     {Files: []undo{{Path: "in/hooks/pre-commit", Before: "0-before", Mode: 0o755, After: absent}}},
		"removes a folder outside":  {Dirs: []string{"../keys"}},
		"removes the repository":    {Dirs: []string{"."}},
		"has a path with the root":  {Files: []undo{{Path: "/evil", Before: "0-before", Mode: 0o755, After: absent}}},
		"has the bit of a set user": {Files: []undo{{Path: "evil", Before: "0-before", Mode: 0o755 | os.ModeSetuid, After: absent}}},
	}
}

func TestJournalsOfStrangersAreRefused(t *testing.T) {
	t.Parallel()
	for name, left := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(left)
			if err != nil {
				t.Fatal(err)
			}
			home, repository := stranger(t, string(text))
			before := outside(t, home)
			_, err = Run(repository, nil, func(*Transaction) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "remove "+filepath.Join(repository, project.StateDir, UndoDir)) {
				t.Errorf("got error %v, want what to remove", err)
			}
			if now := outside(t, home); !maps.Equal(now, before) {
				t.Errorf("there was %v, and there is %v", before, now)
			}
			if _, err := os.Stat(filepath.Join(repository, "stolen")); err == nil {
				t.Error("a file of the user is in the repository")
			}
		})
	}
}

func TestWritesDoNotFollowLinksOutOfTheProject(t *testing.T) {
	t.Parallel()
	home, repository := stranger(t, `{}`)
	before := outside(t, home)
	_, err := Run(repository, nil, func(tx *Transaction) error {
		return tx.Write([]generate.Change{
			{Path: filepath.Join(repository, "file"), After: []byte("new")},
			{Path: filepath.Join(repository, "out", "id"), After: []byte("new")},
		})
	})
	if now := outside(t, home); err == nil || !maps.Equal(now, before) {
		t.Errorf("got error %v; there was %v, and there is %v", err, before, now)
	}
	if text, err := os.ReadFile(filepath.Join(repository, "file")); err != nil || string(text) != "f" {
		t.Errorf("the other file has %s, %v", text, err)
	}
}

// FuzzJournal has commands begin in a repository with any journal.
func FuzzJournal(f *testing.F) {
	for _, left := range hostile() {
		text, err := json.Marshal(left)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`{"files":[{"path":"file","before":"0-before","mode":420,"after":["` + Hash([]byte("f")) + `"]}],"dirs":["empty"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		home, repository := stranger(t, text)
		before := outside(t, home)
		_, _ = Run(repository, nil, func(*Transaction) error { return nil }) // most are refused
		if now := outside(t, home); !maps.Equal(now, before) {
			t.Errorf("there was %v, and there is %v", before, now)
		}
	})
}
