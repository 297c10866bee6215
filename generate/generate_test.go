// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/generate"
)

// run generates as steer generate does, and fails the test on any error.
func run(t *testing.T, dir string, args ...string) *generate.Result {
	t.Helper()
	result, err := generate.Run(context.Background(), request(t, dir, generate.Steer, args...))
	var wrong *generate.SourceError
	if errors.As(err, &wrong) {
		t.Fatalf("%v: %v", err, wrong.Problems)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func request(t *testing.T, dir string, mode generate.Mode, args ...string) *generate.Request {
	t.Helper()
	r, err := generate.Parse(args, mode)
	if err != nil {
		t.Fatal(err)
	}
	r.Dir = dir
	return r
}

// project writes the files of an archive into a new module that has the
// requirements of this one.
func project(t *testing.T, archive string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(mod, []byte("\n"))
	files := append(txtar.Parse([]byte(archive)).Files, txtar.File{Name: "go.mod", Data: append([]byte("module example.com/project\n"), rest...)})
	for _, file := range files {
		path := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	age(t, dir)
	return dir
}

// age has everything in a folder be a minute old.
func age(t *testing.T, dir string) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	})
	if err != nil {
		t.Fatal(err)
	}
}

const small = `
-- api/v1/doc.go --
// +groupName=example.com
// +kubebuilder:object:generate=true
package v1

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get
-- api/v1/types.go --
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/project/shared"
)

// Thing is a thing.
type Thing struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	// Size is its size.
	Size shared.Size ` + "`json:\"size\"`" + `
}
-- shared/size.go --
package shared

// Size is a number.
// +kubebuilder:validation:Maximum=3
type Size int32
`

func TestOutputsAreThoseOfControllerGen(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, loader := range []string{"fast", "go"} {
		t.Run(loader, func(t *testing.T) {
			t.Parallel()
			r := request(t, root, generate.Compatible, "crd", "object", "rbac:roleName=fixture", "webhook", "applyconfiguration",
				"schemapatch:manifests=./generate/testdata/schemapatch,maxDescLen=40", "paths=./generate/testdata/api/...")
			r.Loader = loader
			result, err := generate.Run(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			var compared []string
			for _, file := range result.Files {
				name := filepath.Join(file.Generator, filepath.Base(file.Path))
				switch file.Generator {
				case "object":
					name = filepath.Join("object", filepath.Base(filepath.Dir(file.Path))+".go.golden")
				case "applyconfiguration":
					_, below, _ := strings.Cut(file.Path, "/applyconfiguration/")
					name = filepath.Join("apply", strings.ReplaceAll(below, "/", "_")+".golden")
				}
				want, err := os.ReadFile(filepath.Join("testdata", "golden", name))
				if err != nil {
					t.Fatal(err)
				}
				compared = append(compared, name)
				if diff := cmp.Diff(string(want), string(file.Data)); diff != "" {
					t.Errorf("%s (-controller-gen +ours):\n%s", name, diff)
				}
			}
			golden, err := filepath.Glob(filepath.Join("testdata", "golden", "*", "*"))
			if err != nil || len(golden) != len(compared) {
				t.Errorf("%d outputs for %d recordings: %v", len(compared), len(golden), compared)
			}
		})
	}
}

func TestMistakesAreReportedAtTheirPlaceAllAtOnce(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "mistakes", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(text)
			dir := project(t, string(text))
			_, err = generate.Run(context.Background(), request(t, dir, generate.Steer, strings.Fields(string(archive.Comment))...))
			var got strings.Builder
			var wrong *generate.SourceError
			switch {
			case errors.As(err, &wrong):
				for _, problem := range wrong.Problems {
					got.WriteString(strings.TrimPrefix(problem.String(), dir+"/") + "\n")
				}
			case err != nil:
				got.WriteString(strings.ReplaceAll(err.Error(), dir+"/", "") + "\n")
			}
			at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if at < 0 {
				t.Fatal("the script has no file want")
			}
			if *update {
				archive.Files[at].Data = []byte(got.String())
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[at].Data), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarkersDecideWhatIsMade(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	var paths []string
	for _, file := range run(t, dir).Files {
		paths = append(paths, strings.TrimPrefix(file.Path, dir+"/"))
	}
	want := []string{"config/crd/bases/example.com_things.yaml", "api/v1/zz_generated.deepcopy.go", "config/rbac/role.yaml"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesAreReplacedAllOrNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("a"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path("b"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := generate.Apply([]generate.Change{
		{Path: path("a"), Before: []byte("old"), After: []byte("new")},
		{Path: path("new"), After: []byte("new")},
		{Path: path("b"), After: []byte("a directory is in the way")},
	})
	if err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	if got, err := os.ReadFile(path("a")); err != nil || string(got) != "old" {
		t.Errorf("a = %q, %v; want its old content", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := generate.Apply([]generate.Change{{Path: path("a"), Before: []byte("old"), After: []byte("new")}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path("a")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode was not kept: %v, %v", info.Mode(), err)
	}
}

func TestARunIsSkippedUntilAnyInputChanges(t *testing.T) {
	t.Parallel()
	changes := map[string]func(t *testing.T, dir string, r *generate.Request) *generate.Request{
		"a source file": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "api/v1/types.go"), "// changed\n")
			return r
		},
		"a new file": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "api/v1/more.go"), "package v1\n")
			return r
		},
		"a new package": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "api/v2/more.go"), "package v2\n")
			return r
		},
		"go.mod": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "go.mod"), "// changed\n")
			return r
		},
		"go.sum": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "go.sum"), "changed\n")
			return r
		},
		"a file of a package that is imported": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "shared/size.go"), "// changed\n")
			return r
		},
		"go.work": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "go.work"), "go 1.26.0\nuse .\n")
			return r
		},
		"the directory": func(t *testing.T, dir string, _ *generate.Request) *generate.Request {
			r := remembering(t, dir)
			r.Dir = filepath.Join(dir, "api")
			return r
		},
		"the loader": func(_ *testing.T, _ string, r *generate.Request) *generate.Request {
			r.Loader = "go"
			return r
		},
		"the header file": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "hack/boilerplate.go.txt"), "// Copyright\n")
			return r
		},
		"an output": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			edit(t, filepath.Join(dir, "config/rbac/role.yaml"), "# changed\n")
			return r
		},
		"an output that is gone": func(t *testing.T, dir string, r *generate.Request) *generate.Request {
			if err := os.Remove(filepath.Join(dir, "config/rbac/role.yaml")); err != nil {
				t.Fatal(err)
			}
			return r
		},
		"the arguments": func(t *testing.T, dir string, _ *generate.Request) *generate.Request {
			return remembering(t, dir, "crd")
		},
		"the build tags": func(_ *testing.T, _ string, r *generate.Request) *generate.Request {
			r.Tags = []string{"ignore_autogenerated", "more"}
			return r
		},
		"the strictness": func(_ *testing.T, _ string, r *generate.Request) *generate.Request {
			r.Lenient = true
			return r
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, small)
			r := remembering(t, dir)
			if r.Unchanged() {
				t.Fatal("unchanged before the first run")
			}
			result, err := generate.Run(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			changes, err := result.Changes()
			if err != nil {
				t.Fatal(err)
			}
			if err := generate.Apply(changes); err != nil {
				t.Fatal(err)
			}
			r.Remember(result)
			if !remembering(t, dir).Unchanged() {
				t.Fatal("a second run would not be skipped")
			}
			if change(t, dir, remembering(t, dir)).Unchanged() {
				t.Error("a run would be skipped")
			}
		})
	}
}

// Another program changes the sources while this one has read them and has not finished.
func TestARunIsNotSkippedForWhatItHasNotRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string){
		"a source file": func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "api/v1/types.go"), "// changed\n") },
		"a new file":    func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "api/v1/more.go"), "package v1\n") },
		"a new package": func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "api/v2/more.go"), "package v2\n") },
		"go.mod":        func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "go.mod"), "// changed\n") },
		"a file that is gone": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "api/v1/types.go")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, small)
			r := remembering(t, dir)
			result, err := generate.Run(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			change(t, dir)
			changes, err := result.Changes()
			if err != nil {
				t.Fatal(err)
			}
			if err := generate.Apply(changes); err != nil {
				t.Fatal(err)
			}
			r.Remember(result)
			if remembering(t, dir).Unchanged() {
				t.Error("the next run would be skipped")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := result.Wait(ctx, time.Hour); err != nil {
				t.Error("the change is not noticed: ", err)
			}
		})
	}
}

func TestTheEnvironmentIsAnInput(t *testing.T) {
	dir := project(t, small)
	r := remembering(t, dir)
	result, err := generate.Run(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := result.Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := generate.Apply(changes); err != nil {
		t.Fatal(err)
	}
	r.Remember(result)
	if !remembering(t, dir).Unchanged() {
		t.Fatal("a second run would not be skipped")
	}
	for _, variable := range []string{"GOOS=plan9", "GOARCH=arm64", "GOFLAGS=-mod=mod", "GOWORK=off"} {
		name, value, _ := strings.Cut(variable, "=")
		t.Run(name, func(t *testing.T) {
			if os.Getenv(name) == value {
				value += "1"
			}
			t.Setenv(name, value)
			if remembering(t, dir).Unchanged() {
				t.Error("a run would be skipped")
			}
		})
	}
}

// remembering is a request whose cache is inside the project.
func remembering(t *testing.T, dir string, args ...string) *generate.Request {
	t.Helper()
	r := request(t, dir, generate.Steer, args...)
	r.Cache = filepath.Join(dir, ".cache")
	return r
}

func edit(t *testing.T, path, more string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, more...), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDiffShowsOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	change := generate.Change{Path: "x", Before: []byte("1\n2\n3\n4\n5\n6\n7\n8\n"), After: []byte("1\n2\n3\n4\nfive\n6\n7\n8\n9\n")}
	want := "--- x\n+++ x\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n+9\n"
	if diff := cmp.Diff(want, change.Diff()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnknownOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"crds":                         `did you mean "crd"?`,
		"crd crd":                      "twice",
		"crd output:rbac:dir=x":        "not run",
		"rbac":                         `missing argument "roleName"`,
		"crd:maxDescLen=x":             "expected integer",
		"crd:maxDesLen=1":              `did you mean "maxDescLen"?`,
		"crd:crdVersions={v1}x":        "expected comma",
		"output:artifacts:code=x":      `missing argument "config"`,
		"object:headerFile=a,object=b": "unknown argument",
	} {
		if _, err := generate.Parse(strings.Fields(args), generate.Steer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
	}
}
