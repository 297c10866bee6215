// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestKustomizationsBuildWhatPackageYAMLWrites makes a project in the layout of kubebuilder
// with webhooks, a conversion, all additions and a namespace of another name: kustomize
// builds config/default to the objects of package yaml.
func TestKustomizationsBuildWhatPackageYAMLWrites(t *testing.T) {
	t.Parallel()
	program, dir := filepath.Join(t.TempDir(), "steer"), t.TempDir()
	build(t, "../..", program, "./cmd/steer")
	steer := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("steer %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	check := func() {
		t.Helper()
		steer("package", "kustomize")
		steer("package", "yaml")
		manifest, err := os.ReadFile(filepath.Join(dir, "dist", "install.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "config", "default"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		want, got := objects(t, manifest), objects(t, text)
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s:\n%s\nwant:\n%s", name, got[name], want[name])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d objects, want %d", len(got), len(want))
		}
	}
	gvk := func(version string) []string {
		return []string{"--group", "webapp", "--version", version, "--kind", "Guestbook"}
	}
	steer("init", "--domain", "example.com", "--project-name", "guestbook", "--layout", "kubebuilder")
	steer(append([]string{"create", "api"}, gvk("v1")...)...)
	check()
	steer(append([]string{"create", "webhook", "--programmatic-validation", "--defaulting"}, gvk("v1")...)...)
	steer(append([]string{"create", "api"}, gvk("v2")...)...)
	steer(append([]string{"create", "webhook", "--conversion"}, gvk("v2")...)...)
	check()
	settings := "image: example.com/guestbook:v7\nnamespace: elsewhere\nreplicas: 2\nwith: [records, grafana, alerts]\n"
	if err := os.WriteFile(filepath.Join(dir, "steer.yaml"), []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	check()
}
