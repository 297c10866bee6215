// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/manifests"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// conditionEstablished makes kubectl print whether a CRD is served.
const conditionEstablished = `go-template={{range .status.conditions}}{{if eq .type "Established"}}{{.status}}{{end}}{{end}}`

// established waits until the API server serves a CRD: kubectl wait fails while a CRD has no
// conditions.
func established(t *testing.T, get func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for get() != "True" {
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatal("the CRD is not established")
		}
	}
}

// TestBundleOnKubeAPIServer applies the manifests of a bundle with strict validation to the
// kube-apiserver of STEERTEST_KUBECONFIG, with OLM's definition of ClusterServiceVersions,
// and what OLM makes of the ClusterServiceVersion: Deployments and roles.
func TestBundleOnKubeAPIServer(t *testing.T) {
	kubeconfig := os.Getenv("STEERTEST_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("STEERTEST_KUBECONFIG names no kube-apiserver: run make deploy")
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl")
	}
	const namespace = "placeholder" // that of ClusterServiceVersions in bundles; other objects have none
	in := func(args ...string) string {
		t.Helper()
		return run(t, "", append([]string{kubectl, "--kubeconfig", kubeconfig, "--namespace", namespace}, args...)...)
	}
	apply := func(file string) { t.Helper(); in("apply", "--server-side", "--validate=strict", "-f", file) }
	served := func(crd string) {
		t.Helper()
		established(t, func() string { return in("get", "crd", crd, "-o", conditionEstablished) })
	}
	write := func(o any) string {
		t.Helper()
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "object.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	dir := filepath.Join(project(t, "records,grafana"), "bundle") // the server has no kinds for alerts
	in("create", "namespace", namespace)
	definition := crds.ClusterServiceVersion()
	apply(write(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": definition.Name, "annotations": definition.Annotations}, "spec": definition.Spec,
	}))
	served("clusterserviceversions.operators.coreos.com")
	apply(filepath.Join(dir, "manifests"))
	served("guestbooks.webapp.example.com")

	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	strategy := bundle.CSV.Spec.InstallStrategy.StrategySpec
	if len(strategy.DeploymentSpecs) != 1 || len(strategy.ClusterPermissions) == 0 || len(strategy.Permissions) == 0 {
		t.Fatalf("the strategy has %d Deployments, %d cluster permissions and %d permissions",
			len(strategy.DeploymentSpecs), len(strategy.ClusterPermissions), len(strategy.Permissions))
	}
	for _, d := range strategy.DeploymentSpecs {
		apply(write(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": d.Name, "labels": d.Label}, "spec": d.Spec}))
	}
	for _, p := range strategy.ClusterPermissions {
		apply(write(rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: p.ServiceAccountName}, Rules: p.Rules,
		}))
	}
	for _, p := range strategy.Permissions {
		apply(write(rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: p.ServiceAccountName}, Rules: p.Rules,
		}))
	}
}
