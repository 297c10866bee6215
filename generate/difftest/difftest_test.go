// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package difftest records what controller-gen makes of the fixtures in
// ../testdata/api, so that the main module's tests can compare without depending
// on it:
//
//	go test . -update
//
// Without the flag it checks that the recordings are still what the tool makes, and
// that it makes what the scripts of the generators' own tests expect.
package difftest

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "replace the recordings")

func TestRecordingsAreControllerGens(t *testing.T) {
	tool := controllerGen(t)
	out := t.TempDir()
	const paths = "paths=./generate/testdata/api/..."
	root := filepath.Join("..", "..")
	run(t, root, tool, "crd", paths, "output:dir="+filepath.Join(out, "crd"))
	run(t, root, tool, "rbac:roleName=fixture", paths, "output:dir="+filepath.Join(out, "rbac"))
	run(t, root, tool, "webhook", paths, "output:dir="+filepath.Join(out, "webhook"))
	run(t, root, tool, "schemapatch:manifests=./generate/testdata/schemapatch,maxDescLen=40", paths, "output:dir="+filepath.Join(out, "schemapatch"))
	for _, version := range []string{"shared", "v1", "v1alpha1", "v1beta1"} {
		dir := filepath.Join(out, "object", version)
		run(t, root, tool, "object", "paths=./generate/testdata/api/"+version, "output:dir="+dir)
		if err := os.Rename(filepath.Join(dir, "zz_generated.deepcopy.go"), filepath.Join(out, "object", version+".go.golden")); err != nil {
			t.Fatal(err)
		}
	}
	const made = "../testdata/api/v1beta1/applyconfiguration"
	run(t, root, tool, "applyconfiguration", "paths=./generate/testdata/api/v1beta1")
	t.Cleanup(func() { os.RemoveAll(made) })
	err := filepath.WalkDir(made, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.ReplaceAll(strings.TrimPrefix(path, made+"/"), "/", "_") + ".golden"
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(out, "apply"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(out, "apply", name), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("..", "testdata", "golden")
	err = filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		recorded := filepath.Join(golden, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(recorded), 0o755); err != nil {
				return err
			}
			return os.WriteFile(recorded, got, 0o644)
		}
		if want, err := os.ReadFile(recorded); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what controller-gen makes; record again with -update", recorded)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func controllerGen(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "controller-gen")
	run(t, ".", "go", "build", "-o", tool, "sigs.k8s.io/controller-tools/cmd/controller-gen")
	return tool
}

// TestScriptsExpectWhatControllerGenMakes plays the scripts of package generatetest
// that have outputs with controller-gen, but for those with the habits of Steer.
func TestScriptsExpectWhatControllerGenMakes(t *testing.T) {
	tool := controllerGen(t)
	scripts, err := filepath.Glob(filepath.Join("..", "*", "testdata", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		if err != nil {
			t.Fatal(err)
		}
		options := strings.TrimSpace(string(archive.Comment))
		if strings.HasSuffix(options, " strict") || strings.HasPrefix(options, "protobuf") {
			continue // controller-gen writes no protobuf
		}
		t.Run(strings.TrimPrefix(filepath.ToSlash(script), "../"), func(t *testing.T) {
			dir := t.TempDir()
			wanted := map[string]string{}
			for _, file := range archive.Files {
				if name, ok := strings.CutPrefix(file.Name, "want/"); ok {
					wanted[name] = string(file.Data)
				} else {
					write(t, filepath.Join(dir, file.Name), file.Data)
				}
			}
			if len(wanted) == 0 {
				return // the messages are ours
			}
			module(t, dir)
			args := []string{options, "paths=./..."}
			if strings.HasPrefix(options, "crd") {
				args = append(args, "output:dir=.")
			}
			run(t, dir, tool, args...)
			for name, want := range wanted {
				got, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil || string(got) != want {
					t.Errorf("%s is not what controller-gen makes: %v\n%s", name, err, got)
				}
			}
		})
	}
}

// module makes a directory a module that has the requirements of the main one.
func module(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "go.mod" {
			_, requirements, _ := bytes.Cut(text, []byte("\n"))
			text = append([]byte("module example.com/project\n"), requirements...)
		}
		write(t, filepath.Join(dir, name), text)
	}
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
