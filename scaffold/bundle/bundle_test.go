// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// newProject makes a project with a kind and webhooks.
func newProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: gvk}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateWebhook(t.Context(), scaffold.WebhookOptions{Dir: dir, GVK: gvk, Validation: true}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// at is a value in an object, by the names of fields and indices of lists.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				t.Fatalf("%v has no element %d", path, step)
			}
			value = list[step]
		}
	}
	return value
}

// TestBundleIsThatOfTheBaseAndTheDeployment makes two versions of a bundle, the second with
// a base.
func TestBundleIsThatOfTheBaseAndTheDeployment(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	file := filepath.Join(dir, "bundle", "manifests", "guestbook.clusterserviceversion.yaml")
	packaged := func(o Options) (*project.Report, map[string]any) {
		t.Helper()
		o.Dir = dir
		report, err := Write(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var csv map[string]any
		if err := yaml.Unmarshal(text, &csv); err != nil {
			t.Fatal(err)
		}
		return report, csv
	}
	write(t, filepath.Join(dir, "config", "extras", "own.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop-dashboard}\n---\n# a comment\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: shop-policy}\n")
	report, csv := packaged(Options{Version: "0.1.0"})
	if len(report.Notes) != 1 || !strings.HasPrefix(report.Notes[0], "ValidatingAdmissionPolicy shop-policy of config/extras is left out, since OLM has no such kind in bundles") {
		t.Errorf("notes: %v", report.Notes)
	}
	want := []string{
		"bundle/bundle.Dockerfile", "bundle/manifests/guestbook-controller-manager-metrics-service_service.yaml",
		"bundle/manifests/guestbook-controller-manager_networkpolicy.yaml", "bundle/manifests/guestbook-controller-manager_poddisruptionbudget.yaml",
		"bundle/manifests/guestbook-guestbook-admin-role_clusterrole.yaml", "bundle/manifests/guestbook-guestbook-editor-role_clusterrole.yaml",
		"bundle/manifests/guestbook-guestbook-viewer-role_clusterrole.yaml",
		"bundle/manifests/guestbook-metrics-reader_clusterrole.yaml", "bundle/manifests/guestbook.clusterserviceversion.yaml", "bundle/manifests/shop-dashboard_configmap.yaml",
		"bundle/manifests/webapp.example.com_guestbooks.yaml", "bundle/metadata/annotations.yaml",
	}
	if !slices.Equal(report.Created, want) {
		t.Errorf("created %v", report.Created)
	}
	for what, got := range map[string]any{
		"guestbook.v0.1.0":               at(t, csv, "metadata", "name"),
		"ValidatingAdmissionWebhook":     at(t, csv, "spec", "webhookdefinitions", 0, "type"),
		"guestbook-controller-manager":   at(t, csv, "spec", "webhookdefinitions", 0, "deploymentName"),
		"guestbooks.webapp.example.com":  at(t, csv, "spec", "customresourcedefinitions", "owned", 0, "name"),
		"guestbook:latest":               at(t, csv, "spec", "install", "spec", "deployments", 0, "spec", "template", "spec", "containers", 0, "image"),
		"guestbook-controller-manager\n": at(t, csv, "spec", "install", "spec", "clusterPermissions", 0, "serviceAccountName").(string) + "\n",
	} {
		if strings.TrimSuffix(what, "\n") != strings.TrimSuffix(got.(string), "\n") {
			t.Errorf("got %q, want %q", got, what)
		}
	}
	for _, name := range want {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		// OLM installs a bundle into a namespace that it is told.
		if strings.Contains(string(text), "namespace: guestbook-system") {
			t.Errorf("%s has a namespace:\n%s", name, text)
		}
	}
	text, err := yaml.Marshal(at(t, csv, "spec", "install"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secrets") || !strings.Contains(string(text), "leases") {
		t.Errorf("the rights are\n%s", text)
	}
	if examples := at(t, csv, "metadata", "annotations", "alm-examples").(string); !strings.Contains(examples, `"kind":"Guestbook"`) {
		t.Errorf("the examples are %s", examples)
	}

	write(t, filepath.Join(dir, "config", "manifests", "bases", "guestbook.clusterserviceversion.yaml"), "metadata: {annotations: {own: x}}\nspec: {description: Books of guests, replaces: old}\n")
	_, csv = packaged(Options{Version: "0.2.0", Replaces: "guestbook.v0.1.0", Channels: []string{"stable", "alpha"}})
	if got := at(t, csv, "spec", "replaces"); got != "guestbook.v0.1.0" {
		t.Errorf("it replaces %v", got)
	}
	if at(t, csv, "spec", "description") != "Books of guests" || at(t, csv, "metadata", "annotations", "own") != "x" || len(at(t, csv, "spec", "installModes").([]any)) != 4 {
		t.Errorf("the base is lost: %v", slices.Sorted(maps.Keys(csv["spec"].(map[string]any))))
	}
	annotations, err := os.ReadFile(filepath.Join(dir, "bundle", "metadata", "annotations.yaml"))
	if err != nil || !strings.Contains(string(annotations), "channels.v1: stable,alpha") || !strings.Contains(string(annotations), "channel.default.v1: stable") {
		t.Errorf("%v\n%s", err, annotations)
	}
	for _, version := range []string{"", "v1.0.0", "1.0", "1.0.0 "} {
		if _, err := Write(t.Context(), Options{Dir: dir, Version: version}); !errors.Is(err, project.ErrUsage) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// TestBundleRefusesRolesOfOtherNamespaces: a bundle has no place for them.
func TestBundleRefusesRolesOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	file := filepath.Join(dir, "internal", "controller", "guestbook_controller.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "// +kubebuilder:rbac:", "// +kubebuilder:rbac:groups=\"\",namespace=elsewhere,resources=secrets,verbs=get\n// +kubebuilder:rbac:", 1))
	_, err = Write(t.Context(), Options{Dir: dir, Version: "0.1.0"})
	if !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), "is in the namespace elsewhere, and a bundle is installed into one namespace") {
		t.Errorf("got %v", err)
	}
}

// TestMistakesOfFilesHaveALine: the base and the samples are files that people write.
func TestMistakesOfFilesHaveALine(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	for name, text := range map[string]string{
		"config/manifests/bases/guestbook.clusterserviceversion.yaml": "metadata: {}\nspec: []]\n",
		"config/samples/webapp_v1_guestbook.yaml":                     "kind: A\n---\nkind: [\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		before, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		write(t, file, text)
		want := fmt.Sprintf("%s:%d: did not find", file, strings.Count(text, "\n"))
		if _, err := Write(t.Context(), Options{Dir: dir, Version: "0.1.0"}); !errors.Is(err, project.ErrUsage) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
		if before == nil {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, before, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMarkersDescribeFields reads the markers of operator-sdk.
func TestMarkersDescribeFields(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "types.go"), `package v1

// Shop sells.
// +operator-sdk:csv:customresourcedefinitions:displayName="A Shop",resources={{Deployment,v1,shop},{"Pod",v1}}
type Shop struct {
	Spec   ShopSpec   `+"`json:\"spec\"`"+`
	Status ShopStatus `+"`json:\"status\"`"+`
}

type ShopSpec struct {
	// Size is how many
	// there are.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=2,xDescriptors={"urn:a","urn:b"}
	PodCount int `+"`json:\"size,omitempty\"`"+`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="First, of all",order=1
	First string `+"`json:\"first\"`"+`
	Shelves []*Shelf `+"`json:\"shelves\"`"+`
	hidden Shelf
}

type Shelf struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Wood string `+"`json:\"wood\"`"+`
	Above *Shelf `+"`json:\"above\"`"+`
}

type ShopStatus struct {
	// +operator-sdk:csv:customresourcedefinitions:type=status,xDescriptors="urn:c"
	Open bool `+"`json:\"open\"`"+`
}
`)
	types, err := readTypes(dir)
	if err != nil {
		t.Fatal(err)
	}
	owned := object{}
	types.describe(types["Shop"], owned)
	got, err := yaml.Marshal(owned)
	if err != nil {
		t.Fatal(err)
	}
	const want = `displayName: A Shop
resources:
- kind: Deployment
  name: shop
  version: v1
- kind: Pod
  name: ""
  version: v1
specDescriptors:
- displayName: First, of all
  path: first
- description: Size is how many there are.
  displayName: Pod Count
  path: size
  x-descriptors:
  - urn:a
  - urn:b
- displayName: Wood
  path: shelves[0].wood
statusDescriptors:
- displayName: Open
  path: open
  x-descriptors:
  - urn:c
`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}
