// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate"
)

// record names a directory with the binaries of code-generator v0.37.2:
//
//	for tool in client lister informer register; do
//		GOBIN=DIR go install k8s.io/code-generator/cmd/$tool-gen@v0.37.2
//	done
//	go test ./generate/client -run TestClientsCanBeUsedForCodeGenerators -record DIR
var record = flag.String("record", "", "record anew what the code-generator in this directory makes")

const (
	clientFixture = "github.com/steer-dev/steer/generate/client/testdata/clients"
	clientGolden  = "testdata/clients/surface.txt"
)

func TestClientsCanBeUsedForCodeGenerators(t *testing.T) {
	t.Parallel()
	if *record != "" {
		if err := os.WriteFile(clientGolden, []byte(strings.Join(recordedSurface(t), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(clientGolden)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const dir = "generate/client/testdata/clients/made"
	request, err := generate.Parse([]string{
		"client:dir=" + dir, "lister:dir=" + dir, "informer:dir=" + dir, "register", "paths=./generate/client/testdata/clients/...",
	}, generate.Compatible)
	if err != nil {
		t.Fatal(err)
	}
	request.Dir = root
	result, err := generate.Run(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range result.Files {
		name, err := filepath.Rel(filepath.Join(root, "generate", "client", "testdata", "clients"), file.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, surface(t, name, file.Data)...)
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-code-generator +ours):\n%s", diff)
	}
}

// TestInformersAreTypedWhereClientGoHasThem: what is generated compiles with the client-go that a
// module requires.
func TestInformersAreTypedWhereClientGoHasThem(t *testing.T) {
	t.Parallel()
	types, err := os.ReadFile("testdata/clients/shop/v1/types.go")
	if err != nil {
		t.Fatal(err)
	}
	for requires, want := range map[string]bool{
		"":                                 true,
		"require k8s.io/client-go v0.36.3": false,
		"require k8s.io/client-go v0.37.0": true,
		"require k8s.io/client-go v0.38.0-alpha.2":                                              true,
		"require k8s.io/client-go v1.5.2\nreplace k8s.io/client-go => k8s.io/client-go v0.36.0": false,
		"require k8s.io/client-go v0.36.3\nreplace k8s.io/client-go => ../fork":                 false,
	} {
		dir := t.TempDir()
		write := func(name string, text []byte) {
			t.Helper()
			name = filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		write("go.mod", []byte("module example.com/project\n\ngo 1.26.0\n\n"+requires+"\n"))
		write("shop/v1/doc.go", []byte("// +groupName=shop.example.com\npackage v1\n"))
		write("shop/v1/types.go", types)
		request, err := generate.Parse([]string{"client", "informer", "paths=./..."}, generate.Compatible)
		if err != nil {
			t.Fatal(err)
		}
		request.Dir = dir
		result, err := generate.Run(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		typed := 0
		for _, file := range result.Files {
			if bytes.Contains(file.Data, []byte("cache.Typed")) || bytes.Contains(file.Data, []byte("discovery.DiscoveryInterfaces")) {
				typed++
			}
		}
		if len(result.Files) == 0 || typed > 0 != want {
			t.Errorf("%q: %d files, of which %d need client-go v0.37", requires, len(result.Files), typed)
		}
	}
}

func TestAKindWithoutAGroupHasNoClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":   "module example.com/project\n\ngo 1.26.0\n",
		"types.go": "package v1\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n// +genclient\ntype Shop struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata\"`\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	request, err := generate.Parse([]string{"client", "lister", "paths=./..."}, generate.Compatible)
	if err != nil {
		t.Fatal(err)
	}
	request.Dir = dir
	_, err = generate.Run(t.Context(), request)
	wrong, ok := errors.AsType[*generate.SourceError](err)
	if !ok || len(wrong.Problems) != 1 || !strings.Contains(wrong.Problems[0].String(), "kind Shop has no API group") {
		t.Errorf("%v: %v", err, wrong)
	}
}

// recordedSurface runs code-generator over the fixture.
func recordedSurface(t *testing.T) []string {
	t.Helper()
	tools, err := filepath.Abs(*record)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	header := filepath.Join(out, "header.txt")
	if err := os.WriteFile(header, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	made := clientFixture + "/made"
	versions := []string{"v1", "v2"}
	var packages []string
	for _, version := range versions {
		packages = append(packages, clientFixture+"/shop/"+version)
	}
	tool := func(name string, args ...string) {
		t.Helper()
		command := exec.Command(filepath.Join(tools, name), append([]string{"--go-header-file", header}, args...)...)
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
	}
	tool("client-gen", "--clientset-name", "versioned", "--input-base", "", "--input", strings.Join(packages, ","), "--output-dir", out+"/made/clientset", "--output-pkg", made+"/clientset")
	tool("lister-gen", append([]string{"--output-dir", out + "/made/listers", "--output-pkg", made + "/listers"}, packages...)...)
	tool("informer-gen", append([]string{"--versioned-clientset-package", made + "/clientset/versioned", "--listers-package", made + "/listers",
		"--output-dir", out + "/made/informers", "--output-pkg", made + "/informers"}, packages...)...)
	const registration = "zz_generated.register.go"
	tool("register-gen", append([]string{"--output-file", registration}, packages...)...)
	var lines []string
	for _, version := range versions {
		beside := filepath.Join("testdata", "clients", "shop", version, registration)
		text, err := os.ReadFile(beside)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(beside); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, surface(t, "shop/"+version+"/"+registration, text)...)
	}
	err = filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(out, path)
		lines = append(lines, surface(t, name, text)...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}
