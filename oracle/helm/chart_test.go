// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestChartOfAProjectIsWhatPackageYAMLWrites makes a project with webhooks and packages it
// twice: Helm renders the chart to the objects of package yaml, without the Namespace, and
// installs, upgrades and uninstalls it.
func TestChartOfAProjectIsWhatPackageYAMLWrites(t *testing.T) {
	c := newSimulated(t)
	dir := c.project()
	chart := filepath.Join(dir, "dist", "chart")
	c.must("lint", "--strict", chart)
	manifest, err := os.ReadFile(filepath.Join(dir, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := objects(t, manifest)
	delete(want, "Namespace guestbook-system")
	got := objects(t, []byte(c.must("template", "guestbook", chart, "--namespace", "guestbook-system", "--set", "crd.keep=false")))
	for name := range want {
		c.equal(name, want[name], got[name])
	}
	if len(got) != len(want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}

	c.must("install", "guestbook", chart, "--namespace", "guestbook-system", "--create-namespace", "--wait", "--timeout", patience.String())
	c.must("upgrade", "guestbook", chart, "--namespace", "guestbook-system", "--set", "manager.replicas=2", "--wait", "--timeout", patience.String())
	c.must("uninstall", "guestbook", "--namespace", "guestbook-system", "--wait")
	if out := c.must("template", "guestbook", chart, "--show-only", "templates/crd/guestbooks.webapp.example.com.yaml"); !strings.Contains(out, "helm.sh/resource-policy: keep") {
		t.Errorf("the CRD is not kept:\n%s", out)
	}
}

// project makes a project with a webhook, and what deploys it.
func (c *cluster) project() string {
	c.t.Helper()
	dir := c.t.TempDir()
	gvk := []string{"--group", "webapp", "--version", "v1", "--kind", "Guestbook"}
	c.mustIn(dir, c.steer, "init", "--domain", "example.com", "--project-name", "guestbook")
	c.mustIn(dir, c.steer, append([]string{"create", "api"}, gvk...)...)
	c.mustIn(dir, c.steer, append([]string{"create", "webhook", "--programmatic-validation"}, gvk...)...)
	settings := filepath.Join(dir, "steer.yaml")
	text, err := os.ReadFile(settings)
	if err == nil {
		err = os.WriteFile(settings, append(text, "with: [records, grafana]\n"...), 0o644) // for alerts a server has no kinds
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.mustIn(dir, c.steer, "package", "yaml")
	c.mustIn(dir, c.steer, "package", "helm")
	return dir
}

// objects are those of a stream, by kind and name.
func objects(t *testing.T, text []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for document := range bytes.SplitSeq(text, []byte("---\n")) {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		var all map[string]any
		for _, to := range []any{&o, &all} {
			if err := yaml.Unmarshal(document, to); err != nil {
				t.Fatal(err)
			}
		}
		if all == nil {
			continue
		}
		plain, err := yaml.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		out[o.Kind+" "+o.Metadata.Name] = string(plain)
	}
	return out
}
