// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers_test is an envtest suite that counts on controllers beside the two
// programs: it is run with STEER_CONTROLLERS=all.
package controllers_test

import (
	"context"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// start runs an environment for the length of a test.
func start(t *testing.T) client.WithWatch {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || os.Getenv("STEER_CONTROLLERS") == "" {
		t.Fatal("no control plane with controllers: set KUBEBUILDER_ASSETS and STEER_CONTROLLERS=all")
	}
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the environment: %v", err)
		}
	})
	c, err := client.NewWithWatch(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create(ctx context.Context, t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
}

// watched opens a watch, which begins with what there is.
func watched(ctx context.Context, t *testing.T, c client.WithWatch, list client.ObjectList) watch.Interface {
	t.Helper()
	events, err := c.Watch(ctx, list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	return events
}

// await reads a watch until an event is the one that is waited for.
func await[T client.Object](t *testing.T, events watch.Interface, what string, is func(watch.EventType, T) bool) {
	t.Helper()
	for event := range events.ResultChan() {
		if object, ok := event.Object.(T); ok && is(event.Type, object) {
			return
		}
	}
	t.Fatalf("never seen: %s", what)
}

func TestDeletedNamespaceGoesAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := start(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "inside", Namespace: "short-lived", Finalizers: []string{"example.com/wait"}}}
	create(ctx, t, c, namespace, secret)
	namespaces, secrets := watched(ctx, t, c, &corev1.NamespaceList{}), watched(ctx, t, c, &corev1.SecretList{})
	if err := c.Delete(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	await(t, secrets, "the deletion of what is in it", func(_ watch.EventType, s *corev1.Secret) bool {
		return s.Name == "inside" && s.DeletionTimestamp != nil
	})
	if err := c.Patch(ctx, secret, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	await(t, namespaces, "the end of the namespace", func(event watch.EventType, n *corev1.Namespace) bool {
		return event == watch.Deleted && n.Name == "short-lived"
	})
	if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the secret in it: got %v, want not found", err)
	}
}

func TestDeploymentsRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := start(t)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
	}}
	create(ctx, t, c, web)
	pods := watched(ctx, t, c, &corev1.PodList{})
	await(t, watched(ctx, t, c, &appsv1.DeploymentList{}), "the Deployment is available", func(_ watch.EventType, d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas == 1
	})
	if err := c.Delete(ctx, web); err != nil {
		t.Fatal(err)
	}
	await(t, pods, "its Pod goes with it", func(event watch.EventType, _ *corev1.Pod) bool { return event == watch.Deleted })
}
