// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/kustomize"
	"github.com/steer-dev/steer/scaffold/project"
)

// newProject makes a project with a kind and a webhook, in the layout of kubebuilder.
func newProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout, Layout: "kubebuilder"}); err != nil {
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

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestKustomizationsFollowTheProjectAndKeepEdits(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	p, settings, err := deploy.ReadProject(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := kustomize.Folder(t.Context(), dir, p, settings)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`crd/kustomization.yaml default/kustomization.yaml default/metrics_service.yaml manager/disruption_budget.yaml
		manager/kustomization.yaml manager/manager.yaml network-policy/kustomization.yaml network-policy/network_policy.yaml
		rbac/guestbook_admin_role.yaml rbac/guestbook_editor_role.yaml rbac/guestbook_viewer_role.yaml
		rbac/kustomization.yaml rbac/leader_election_role.yaml rbac/metrics_role.yaml rbac/role_binding.yaml rbac/service_account.yaml
		samples/kustomization.yaml webhook/kustomization.yaml webhook/role.yaml webhook/service.yaml`)
	if got := slices.Sorted(maps.Keys(folder.Files)); !slices.Equal(got, want) {
		t.Errorf("files: %s\nwant: %s", got, want)
	}
	for name, text := range folder.Files {
		if got := read(t, dir, "config/"+name); got != string(text) {
			t.Errorf("create wrote %s otherwise than package kustomize would:\n%s", name, got)
		}
	}
	for name, text := range map[string]string{
		"default/kustomization.yaml": "namePrefix: guestbook-\nnamespace: guestbook-system\n",
		"crd/kustomization.yaml":     "- bases/webapp.example.com_guestbooks.yaml\n",
		"rbac/role_binding.yaml":     "  name: manager-role\nsubjects:\n- kind: ServiceAccount\n  name: controller-manager\n  namespace: system\n",
		"manager/manager.yaml":       "      serviceAccountName: controller-manager\n",
		"webhook/role.yaml":          "  - guestbook-webhook-ca\n",
		"samples/kustomization.yaml": "- v1_guestbook.yaml\n",
	} {
		if !strings.Contains(string(folder.Files[name]), text) {
			t.Errorf("%s lacks %q:\n%s", name, text, folder.Files[name])
		}
	}

	// An edited file stays; what is added to the project comes to the others.
	edited := strings.Replace(read(t, dir, "config/manager/manager.yaml"), "replicas: 1", "replicas: 5", 1)
	if err := os.WriteFile(filepath.Join(dir, "config", "manager", "manager.yaml"), []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	report, err := kustomize.Write(t.Context(), kustomize.Options{Dir: dir, Image: "example.com/guestbook:v2"})
	if err != nil || len(report.Notes) != 1 || !strings.HasPrefix(report.Notes[0], "config/manager/manager.yaml was edited here, and is left") {
		t.Errorf("got %+v, %v", report, err)
	}
	if got := read(t, dir, "config/manager/manager.yaml"); got != edited {
		t.Errorf("the edit is lost:\n%s", got)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: project.GVK{Group: "webapp", Version: "v1", Kind: "Author"}}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, "config/crd/kustomization.yaml"); !strings.Contains(got, "bases/webapp.example.com_authors.yaml") {
		t.Errorf("the kustomization of the CRDs lacks the new one:\n%s", got)
	}
}

func TestKustomizationsRefuseRolesOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	const file = "internal/controller/guestbook_controller.go"
	text := strings.Replace(read(t, dir, file), "// +kubebuilder:rbac:", "// +kubebuilder:rbac:groups=\"\",namespace=elsewhere,resources=secrets,verbs=get\n// +kubebuilder:rbac:", 1)
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := kustomize.Write(t.Context(), kustomize.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "is in the namespace elsewhere, and kustomizations have one namespace, guestbook-system") {
		t.Errorf("got %v", err)
	}
}
