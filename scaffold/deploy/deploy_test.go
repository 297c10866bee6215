// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
	"github.com/steer-dev/steer/steertest"
)

const (
	namespace = "guestbook-system"
	account   = "system:serviceaccount:" + namespace + ":guestbook-controller-manager"
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

// manifest is what the project deploys, as a file.
func manifest(t *testing.T, dir string) string {
	t.Helper()
	p, err := project.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := deploy.ReadSettings(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Objects(t.Context(), dir, p, settings)
	if err != nil {
		t.Fatal(err)
	}
	text, err := deploy.YAML(objects)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "install.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDeploymentRunsUnderItsRoles applies all objects, twice, in their order; the Pods
// of the operator are admitted by the strictest standard, and its account may do what
// it has to, and no more.
func TestDeploymentRunsUnderItsRoles(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	if err := os.WriteFile(filepath.Join(dir, deploy.SettingsFile), []byte("image: registry.example.com/guestbook:v1\nreplicas: 2\nwith: [records, grafana]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := manifest(t, dir)
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme, Workloads: steertest.Workloads()})
	env.Apply(file)
	deployed := steertest.Wait(env, namespace+"/guestbook-controller-manager", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 2 })
	if image := deployed.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/guestbook:v1" {
		t.Errorf("the image is %s", image)
	}
	generation := deployed.Generation
	env.Apply(file)
	if again := steertest.Wait(env, namespace+"/guestbook-controller-manager", func(*appsv1.Deployment) bool { return true }); again.Generation != generation {
		t.Error("applied again, the Deployment changes")
	}

	user := env.AsUser(account, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	list := func(group, version, kind string) error {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
		return user.List(t.Context(), objects)
	}
	create := func(apiVersion, kind, in, name string, spec map[string]any) error {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
		obj.SetName(name)
		obj.SetNamespace(in)
		return user.Create(t.Context(), obj)
	}
	get := func(apiVersion, kind, in, name string) error {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(apiVersion)
		obj.SetKind(kind)
		return user.Get(t.Context(), types.NamespacedName{Namespace: in, Name: name}, obj)
	}
	for what, err := range map[string]error{
		"list its kind":             list("webapp.example.com", "v1", "Guestbook"),
		"create a lease":            create("coordination.k8s.io/v1", "Lease", namespace, "guestbook", map[string]any{}),
		"create the webhooks' CA":   create("v1", "Secret", namespace, "guestbook-webhook-ca", nil),
		"read the webhooks' CA":     get("v1", "Secret", namespace, "guestbook-webhook-ca"),
		"read its configuration":    get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "guestbook-validating-webhook-configuration"),
		"ask who reads its metrics": create("authentication.k8s.io/v1", "TokenReview", "", "", map[string]any{"token": "x"}),
	} {
		if err != nil {
			t.Errorf("may not %s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"list Secrets":                  list("", "v1", "Secret"),
		"create a lease anywhere":       create("coordination.k8s.io/v1", "Lease", "default", "guestbook", map[string]any{}),
		"read a configuration of other": get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "other"),
		"create its kind":               create("webapp.example.com/v1", "Guestbook", "default", "x", map[string]any{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("may %s: %v", what, err)
		}
	}
}

// TestObjectsOfADeploymentAreWhole lists them, with and without webhooks.
func TestObjectsOfADeploymentAreWhole(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	names := func(s deploy.Settings) (out []string) {
		t.Helper()
		p, err := project.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := deploy.Objects(t.Context(), dir, p, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			out = append(out, strings.TrimPrefix(o.Kind+" "+o.Namespace+"/"+o.Name, " "))
		}
		return out
	}
	own := filepath.Join(dir, filepath.FromSlash(project.ExtrasDir))
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"own.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dashboard}\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: first}\n" +
			"---\napiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: own}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: elsewhere}\n",
		"kustomization.yaml": "resources: [own.yaml]\n", // is none of them
	} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{
		"ConfigMap shop/dashboard", "PriorityClass /first", "ClusterIssuer /own", "Secret elsewhere/theirs",
		"Namespace /shop", "CustomResourceDefinition /guestbooks.webapp.example.com", "ServiceAccount shop/guestbook-controller-manager",
		"ClusterRole /guestbook-manager-role", "ClusterRoleBinding /guestbook-manager-rolebinding",
		"Role shop/guestbook-manager-role-leader-election", "RoleBinding shop/guestbook-manager-role-leader-election",
		"ClusterRole /guestbook-metrics-auth-role", "ClusterRoleBinding /guestbook-metrics-auth-rolebinding", "ClusterRole /guestbook-metrics-reader",
		"ClusterRole /guestbook-guestbook-admin-role", "ClusterRole /guestbook-guestbook-editor-role", "ClusterRole /guestbook-guestbook-viewer-role",
		"Service shop/guestbook-controller-manager-metrics-service", "NetworkPolicy shop/guestbook-controller-manager",
		"PodDisruptionBudget shop/guestbook-controller-manager", "Deployment shop/guestbook-controller-manager",
	}
	hooks := []string{
		"Role shop/guestbook-webhook-ca-role", "RoleBinding shop/guestbook-webhook-ca-rolebinding",
		"ClusterRole /guestbook-webhook-ca-role", "ClusterRoleBinding /guestbook-webhook-ca-rolebinding",
		"Service shop/guestbook-webhook-service", "ValidatingWebhookConfiguration /guestbook-validating-webhook-configuration",
	}
	equal := func(got, want []string) {
		t.Helper()
		got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	s := deploy.Settings{Image: "guestbook:v1", Namespace: "shop", Replicas: 1}
	equal(names(s), slices.Concat(common, hooks))
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	convertsInTheCluster(t, dir, s, gvk)
	if _, err := scaffold.DeleteWebhook(t.Context(), scaffold.DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil {
		t.Fatal(err)
	}
	s.ServiceMonitor = true
	equal(names(s), append(common, "ServiceMonitor shop/guestbook-controller-manager-metrics-monitor"))
}

// convertsInTheCluster has the versions of the kind converted, and reads what the
// definition and the role say then.
func convertsInTheCluster(t *testing.T, dir string, s deploy.Settings, gvk project.GVK) {
	t.Helper()
	second := gvk
	second.Version = "v2"
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: second}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateWebhook(t.Context(), scaffold.WebhookOptions{Dir: dir, GVK: gvk, Conversion: true}); err != nil {
		t.Fatal(err)
	}
	p, err := project.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Objects(t.Context(), dir, p, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		text := fmt.Sprint(o)
		switch {
		case o.Kind == "CustomResourceDefinition" && !strings.Contains(text, "name:guestbook-webhook-service namespace:shop path:/convert"):
			t.Errorf("the definition does not lead to the Service: %s", text)
		case o.Kind == "ClusterRole" && o.Name == "guestbook-webhook-ca-role" && !strings.Contains(text, "resourceNames:[guestbooks.webapp.example.com] resources:[customresourcedefinitions] verbs:[get patch]"):
			t.Errorf("the operator may not give the definition its CA: %s", text)
		}
	}
}

func TestSettingsThatCannotBeAreNamed(t *testing.T) {
	t.Parallel()
	p := &project.Project{Name: "guestbook"}
	dir := t.TempDir()
	if s, err := deploy.ReadSettings(dir, p); err != nil || s.Image != "guestbook:latest" || s.Namespace != "guestbook-system" || s.Replicas != 1 || s.Resources.Limits["memory"] != "128Mi" {
		t.Errorf("without a file: %+v, %v", s, err)
	}
	for want, text := range map[string]string{
		`:2: unknown field "imag"`:                      "replicas: 2\nimag: x",
		":3: did not find expected":                     "image: x\n\nserver: {image: x",
		":2: cannot unmarshal":                          "image: x\nreplicas: many",
		":1: image: \"a b\" is no name of an image":     "image: 'a b'",
		":2: namespace: \"A\" is no DNS label":          "\nnamespace: A",
		":1: replicas: -1 is not positive":              "replicas: -1",
		":1: replicas: 0 is not positive":               "replicas: 0",
		`:4: resources: limits: cpu: "lots" is no`:      "resources:\n  limits:\n    memory: 1Gi\n    cpu: lots",
		":2: server: image: \"a b\"":                    "server:\n  image: 'a b'",
		":1: server: storage: \"big\" is no quantity":   "server: {storage: big}",
		`:3: server: resources: requests: cpu: "1 m" i`: "server:\n  resources:\n    requests: {cpu: 1 m}",
	} {
		if err := os.WriteFile(filepath.Join(dir, deploy.SettingsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := deploy.ReadSettings(dir, p); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), deploy.SettingsFile+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want a line with %q, got %v", text, want, err)
		}
	}
}
