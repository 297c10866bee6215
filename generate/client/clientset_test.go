// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
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
	var want []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); !newer(line) {
			want = append(want, older(line))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-code-generator +ours):\n%s", diff)
	}
}

// newer reports whether a declaration is one of those for which client-go v0.37 is
// needed: the typed twins of informers. Clients must compile with v0.36 as well.
func newer(line string) bool {
	for _, part := range []string{"func NewTyped", "type Typed", ": Typed", "func ToTyped", "IndexInformer(", "IndexInformer k8s.io", "Indexers k8s.io", "HandlerFuncs k8s.io", "DetailedHandlerFuncs k8s.io", "FilteringHandler k8s.io", ": type Deleted"} {
		if strings.Contains(line, part) && strings.HasPrefix(line, "made/informers/externalversions/shop/") {
			return true
		}
	}
	// Declared again although the embedded interface has it.
	return strings.HasSuffix(line, "SharedInformerFactory.Start(chan struct) ()") && !strings.Contains(line, "internalinterfaces") ||
		strings.Contains(line, "externalversions: SharedInformerFactory.InformerFor(")
}

// older is a declaration with the types that client-go v0.36 has.
func older(line string) string {
	line = strings.Replace(line, "discovery.DiscoveryInterfaces)", "discovery.DiscoveryInterface)", 1)
	if at := strings.Index(line, "() (Typed"); at > 0 && strings.Contains(line, ": Interface.") {
		line = line[:at] + "() (" + line[at+len("() (Typed"):]
	}
	return line
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
