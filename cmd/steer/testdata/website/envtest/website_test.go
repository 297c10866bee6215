// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtest_test is an ordinary envtest suite: it takes its control planes
// from the programs in the folder that KUBEBUILDER_ASSETS names.
package envtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	websitev1 "example.com/website/api/v1"
	"example.com/website/internal/controller"
)

const patience = time.Minute

// start runs an environment for the length of a test.
func start(t testing.TB, crds ...string) (*envtest.Environment, *rest.Config) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("no control plane: let KUBEBUILDER_ASSETS name a folder with etcd and kube-apiserver")
	}
	env := &envtest.Environment{CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the environment: %v", err)
		}
	})
	return env, cfg
}

func newClient(t *testing.T, cfg *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, websitev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs the operator for the length of a test.
func run(t *testing.T, cfg *rest.Config, scheme *runtime.Scheme) {
	t.Helper()
	skipNames := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skipNames},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&controller.WebsiteReconciler{Client: mgr.GetClient(), Scheme: scheme}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
}

// await reads a watch until an event is the one that is waited for.
func await(t *testing.T, events watch.Interface, what string, is func(watch.Event) bool) {
	t.Helper()
	defer events.Stop()
	for event := range events.ResultChan() {
		if is(event) {
			return
		}
	}
	t.Fatalf("never seen: %s", what)
}

// TestWebsitesAreServedInEveryEnvironment has several environments at once, each
// empty at first and with the same names in it.
func TestWebsitesAreServedInEveryEnvironment(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, cfg := start(t, "../config/crd/bases")
			c := newClient(t, cfg)
			run(t, cfg, c.Scheme())

			deployments, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace("default"))
			if err != nil {
				t.Fatal(err)
			}
			site := &websitev1.Website{
				ObjectMeta: metav1.ObjectMeta{Name: "home", Namespace: "default"},
				Spec:       websitev1.WebsiteSpec{Image: "nginx", Replicas: int32(i + 1)},
			}
			if err := c.Create(ctx, site); err != nil {
				t.Fatal(err)
			}
			await(t, deployments, "the deployment of the website", func(event watch.Event) bool {
				deployment, ok := event.Object.(*appsv1.Deployment)
				return ok && deployment.Name == "home" && *deployment.Spec.Replicas == int32(i+1) &&
					metav1.IsControlledBy(deployment, site)
			})
		})
	}
}

// TestDeletedNamespaceGoesAway is what the usual programs under these names
// leave to a controller that envtest does not start.
func TestDeletedNamespaceGoesAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, cfg := start(t)
	c := newClient(t, cfg)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "inside", Namespace: "short-lived"}}
	for _, object := range []client.Object{namespace, secret} {
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	namespaces, err := c.Watch(ctx, &corev1.NamespaceList{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	await(t, namespaces, "the end of the namespace", func(event watch.Event) bool {
		gone, ok := event.Object.(*corev1.Namespace)
		return ok && event.Type == watch.Deleted && gone.Name == "short-lived"
	})
	if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the secret in it: got %v, want not found", err)
	}
}

// TestUsersMayDoWhatTheirGroupsMay has an administrator, somebody with no rights,
// and a stranger whose certificate is another environment's.
func TestUsersMayDoWhatTheirGroupsMay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	env, cfg := start(t)
	other, _ := start(t)

	add := func(env *envtest.Environment, name string, groups ...string) *rest.Config {
		user, err := env.AddUser(envtest.User{Name: name, Groups: groups}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return user.Config()
	}
	list := func(cfg *rest.Config) error { return newClient(t, cfg).List(ctx, &corev1.ConfigMapList{}) }

	if err := list(add(env, "jane", "system:masters")); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	if err := list(add(env, "john", "developers")); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights: got %v, want forbidden", err)
	}
	stranger := add(other, "jane", "system:masters")
	stranger.Host, stranger.CAData = cfg.Host, cfg.CAData
	if err := list(stranger); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate of another authority: got %v, want unauthorized", err)
	}
}

// BenchmarkEnvironment starts and stops environments, one after the other and
// several at once.
func BenchmarkEnvironment(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	once := func(b *testing.B) {
		env := &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}, ErrorIfCRDPathMissing: true}
		if _, err := env.Start(); err != nil {
			b.Error(err)
			return
		}
		if err := env.Stop(); err != nil {
			b.Error(err)
		}
	}
	b.Run("sequential", func(b *testing.B) {
		for b.Loop() {
			once(b)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				once(b)
			}
		})
	})
}
