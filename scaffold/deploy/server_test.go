// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
	"github.com/steer-dev/steer/steertest"
)

// newServer makes a project with a kind of an operator and one of a custom API server.
func newServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateServer(t.Context(), scaffold.ServerOptions{Dir: dir, GVK: project.GVK{Group: "notes", Version: "v1", Kind: "Note"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestServersAreDeployedBesideTheOperator applies all objects: the Pod of the server is
// admitted by the strictest standard, its account may complete its APIService and keep its
// authority, and no more; and there is no CRD of what it serves.
func TestServersAreDeployedBesideTheOperator(t *testing.T) {
	t.Parallel()
	file := manifest(t, newServer(t))
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "notes.example.com_notes") || strings.Count(string(text), "\nkind: CustomResourceDefinition\n") != 1 {
		t.Error("there is a CRD of what the server serves")
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme, Workloads: steertest.Workloads()})
	env.Apply(file)
	steertest.Wait(env, namespace+"/guestbook-server", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 1 })

	user := env.AsUser("system:serviceaccount:"+namespace+":guestbook-server", "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	secret := func(name string) error {
		return user.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	get := func(apiVersion, kind, in, name string) error {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(apiVersion)
		obj.SetKind(kind)
		return user.Get(t.Context(), types.NamespacedName{Namespace: in, Name: name}, obj)
	}
	trust := func(name string) error {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": map[string]any{"resourceAttributes": map[string]any{
				"group": "apiregistration.k8s.io", "version": "v1", "resource": "apiservices", "verb": "patch", "name": name,
			}},
		}}
		if err := user.Create(t.Context(), review); err != nil {
			return err
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !allowed {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, name, nil)
		}
		return nil
	}
	authentication := get("v1", "ConfigMap", "kube-system", "extension-apiserver-authentication")
	if apierrors.IsNotFound(authentication) { // planes of tests have none
		authentication = nil
	}
	for what, err := range map[string]error{
		"create the Secret of its authority": secret("guestbook-server-ca"),
		"read that Secret":                   get("v1", "Secret", namespace, "guestbook-server-ca"),
		"read a namespace":                   get("v1", "Namespace", "", "default"),
		"complete its APIService":            trust("v1.notes.example.com"),
		"read how users are authenticated":   authentication,
		"review access": user.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": "ann", "nonResourceAttributes": map[string]any{"path": "/", "verb": "get"}},
		}}),
	} {
		if err != nil {
			t.Errorf("may not %s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"read another Secret":          get("v1", "Secret", namespace, "other"),
		"change another APIService":    trust("v1.apps"),
		"read what the operator reads": get("webapp.example.com/v1", "Guestbook", "default", "x"),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("may %s: %v", what, err)
		}
	}
}

// TestServersWithoutStorageHaveNoVolume: kinds with a backend of their own need none.
func TestServersWithoutStorageHaveNoVolume(t *testing.T) {
	t.Parallel()
	dir := newServer(t)
	for settings, volume := range map[string]bool{"": true, "server: {storage: none}\n": false} {
		if err := os.WriteFile(filepath.Join(dir, deploy.SettingsFile), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		p, s, err := deploy.ReadProject(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := deploy.Objects(t.Context(), dir, p, s)
		if err != nil {
			t.Fatal(err)
		}
		claim := slices.ContainsFunc(objects, func(o deploy.Object) bool { return o.Kind == "PersistentVolumeClaim" })
		text, err := deploy.YAML(objects)
		if err != nil {
			t.Fatal(err)
		}
		if uses := strings.Contains(string(text), "--data-dir=/data"); claim != volume || uses != volume {
			t.Errorf("%q: there is a claim: %t, it is used: %t", settings, claim, uses)
		}
	}
}

// TestOnlyTheOperatorIsScraped reads which Services the ServiceMonitor selects.
func TestOnlyTheOperatorIsScraped(t *testing.T) {
	t.Parallel()
	dir := newServer(t)
	if err := os.WriteFile(filepath.Join(dir, deploy.SettingsFile), []byte("serviceMonitor: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(manifest(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	var wanted map[string]string
	for document := range deploy.Documents(text) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
		if o.GetKind() == "ServiceMonitor" {
			wanted, _, _ = unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
		}
	}
	if len(wanted) == 0 {
		t.Fatal("there is no ServiceMonitor that selects")
	}
	var scraped []string
	for _, o := range objects {
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		if o.GetKind() == "Service" && labels.SelectorFromSet(wanted).Matches(labels.Set(o.GetLabels())) && ports[0].(map[string]any)["name"] == "https" {
			scraped = append(scraped, o.GetName())
		}
	}
	if !slices.Equal(scraped, []string{"guestbook-controller-manager-metrics-service"}) {
		t.Errorf("it scrapes %v", scraped)
	}
}
