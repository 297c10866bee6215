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

// TestSuiteFinalizesNamespacesItself relies, as many suites do, on there being no
// controllers beside the two programs: it deletes a namespace and an owner, takes its
// time, and does the rest itself with what it read before.
func TestSuiteFinalizesNamespacesItself(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, cfg := start(t)
	c := newClient(t, cfg)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: "mine"}}
	for _, object := range []client.Object{namespace, owner} {
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dependent", Namespace: "mine", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	if err := c.Create(ctx, dependent); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{owner, namespace} {
		if err := c.Delete(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.Status.Phase != corev1.NamespaceTerminating {
		t.Fatalf("the deleted namespace: %v, phase %s", err, namespace.Status.Phase)
	}
	for i := range 200 { // time in which a controller would act
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("other-", i), Namespace: "default"}}
		if err := c.Create(ctx, other); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(dependent), dependent); err != nil {
		t.Errorf("the dependent of the deleted owner: %v", err)
	}
	namespace.Spec.Finalizers = nil
	if err := c.SubResource("finalize").Update(ctx, namespace); err != nil {
		t.Fatalf("finalize the namespace as it was read: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
		t.Errorf("the finalized namespace: got %v, want not found", err)
	}
}

// TestUsersMayDoWhatTheirGroupsMay has an administrator, a user with no rights,
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
