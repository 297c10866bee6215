// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/client/manifest"
)

func TestReadTakesFilesAndFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: third}\n")
	write("a.json", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first"}}]}`)
	write("notes.txt", "no manifest")
	write("kustomization.yaml", "resources: [b.yaml]\n")
	objects, err := manifest.Read(dir, filepath.Join(dir, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, filepath.Base(o.File)+":"+o.GetName())
	}
	if got, want := strings.Join(names, " "), "a.json:first b.yaml:second b.yaml:third a.json:first"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, path := range map[string]string{"nothing there": filepath.Join(empty, "none"), "no manifests": empty} {
		if _, err := manifest.Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that names %s", name, err, path)
		}
	}
	for name, text := range map[string]string{
		"malformed":     "a: [",
		"duplicate key": "apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: x}\n",
		"no kind":       "apiVersion: v1\nmetadata: {name: x}\n",
		"no apiVersion": "kind: A\nmetadata: {name: x}\n",
		"no name":       "apiVersion: v1\nkind: A\n",
		"a list":        "- a\n",
	} {
		if objects, err := manifest.Parse("f.yaml", []byte("# first\n---\n"+text)); err == nil || !strings.Contains(err.Error(), "f.yaml, document 2") {
			t.Errorf("%s: got %v and %v, want an error that names file and document", name, objects, err)
		}
	}
}
