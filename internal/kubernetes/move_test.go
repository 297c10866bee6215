// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

var nextRelease = release{minor: 37, staging: "v0.37.2", server: "v1.37.2"}

func TestMoveRequiresTheModulesOfTheRelease(t *testing.T) {
	t.Parallel()
	server := `module k8s.io/kubernetes

require (
	go.etcd.io/etcd/server/v3 v3.7.0
	k8s.io/api v0.0.0
	k8s.io/new v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/new => ./staging/src/k8s.io/new
)
`
	for name, files := range map[string][2]string{
		"a library": {`module example.com/a

require (
	k8s.io/api v0.36.3
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2
	sigs.k8s.io/yaml v1.6.0
)
`, `module example.com/a

require (
	k8s.io/api v0.37.2
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2
	sigs.k8s.io/yaml v1.6.0
)
`},
		"the server": {`module example.com/a

require (
	go.etcd.io/etcd/server/v3 v3.6.5
	k8s.io/api v0.36.3
	k8s.io/kubernetes v1.36.3
)

replace k8s.io/api => k8s.io/api v0.36.3

replace example.com/b => ../b
`, `module example.com/a

require (
	go.etcd.io/etcd/server/v3 v3.7.0
	k8s.io/api v0.37.2
	k8s.io/kubernetes v1.37.2
)

replace k8s.io/api => k8s.io/api v0.37.2

replace example.com/b => ../b

replace k8s.io/new => k8s.io/new v0.37.2
`},
	} {
		got, err := require("go.mod", []byte(files[0]), nextRelease, []byte(server))
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(files[1], string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMoveWritesTheVersionThatIsServed(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"apiserver/health.go":                   "const KubernetesVersion = \"v1.36.3\"\n",
		"cmd/steer/internal/command/version.go": "\tKubernetesMinor = 36\n",
	}
	for _, page := range recordedPages() {
		files[page] = "recorded from kube-apiserver 1.36.3\n"
	}
	root := write(t, files)
	m := move{root: root, was: "v0.36.3", release: nextRelease}
	if err := m.versions(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"apiserver/health.go":                   "const KubernetesVersion = \"v1.37.2\"\n",
		"cmd/steer/internal/command/version.go": "\tKubernetesMinor = 37\n",
		"docs/kinds.md":                         "recorded from kube-apiserver 1.37.2\n",
	} {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", path, got, err, want)
		}
	}
	if err := m.versions(); err == nil || !strings.Contains(err.Error(), `apiserver/health.go does not have "v1.36.3"`) {
		t.Error("a version that is not there:", err)
	}
}

func TestMoveWantsACleanTreeAndANewerVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	m := move{out: io.Discard, root: root, was: "v0.37.2", release: nextRelease}
	if out, err := exec.CommandContext(t.Context(), "git", "init", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := m.run(t.Context()); err == nil || !strings.Contains(err.Error(), "no move forward") {
		t.Error("the version that is there:", err)
	}
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.run(t.Context()); !errors.Is(err, errDirty) {
		t.Error("a tree with changes:", err)
	}
}

// TestSourcesOfAModuleForANewerGoAreRead has a module proxy in a folder.
func TestSourcesOfAModuleForANewerGoAreRead(t *testing.T) {
	t.Parallel()
	const name, version = "example.com/newer", "v0.1.0"
	text := "module " + name + "\n\ngo 1.999.0\n"
	tree := write(t, map[string]string{"go.mod": text, "a.go": "package newer\n"})
	proxy := write(t, map[string]string{name + "/@v/" + version + ".mod": text, name + "/@v/" + version + ".info": `{"Version":"` + version + `"}`})
	archive, err := os.Create(filepath.Join(proxy, name, "@v", version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromDir(archive, gomodule.Version{Path: name, Version: version}, tree); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	s := sources{unpacked: t.TempDir(), env: []string{
		"GOPROXY=file://" + filepath.ToSlash(proxy), "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOMODCACHE=" + t.TempDir(), "GOTOOLCHAIN=local",
	}}
	for range 2 { // the second time it is unpacked already
		dir, err := s.dir(t.Context(), name, version)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "a.go")); err != nil || string(got) != "package newer\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if newer, err := s.newerGo(t.Context(), name, version); err != nil || newer != "1.999.0" {
		t.Errorf("it needs %q, %v", newer, err)
	}
	if _, err := s.dir(t.Context(), name, "v0.2.0"); err == nil {
		t.Error("a version that is not there has sources")
	}
}

func TestPagesNameTheVersionThatIsRecorded(t *testing.T) {
	t.Parallel()
	served, err := os.ReadFile(filepath.Join("..", "..", "apiserver", "health.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(served), `KubernetesVersion = "v`)
	version, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		t.Fatal("apiserver/health.go does not say which version is served")
	}
	for _, page := range recordedPages() {
		if text, err := os.ReadFile(filepath.Join("..", "..", page)); err != nil || !strings.Contains(string(text), version) {
			t.Errorf("%s does not name %s, %v", page, version, err)
		}
	}
}
