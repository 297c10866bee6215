// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e_test runs the operator of this project as its author does, against the
// cluster that KUBECONFIG names: `steer dev -- go test ./test/e2e`.
package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "example.com/website/api/v1"
	"example.com/website/api/v1alpha1"
)

// patience bounds the test, which builds the operator first.
const patience = 5 * time.Minute

// makeRun runs the operator with `make run` until the test ends.
func makeRun(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command("make", "run")
	run.Dir, run.Stdout, run.Stderr = root, os.Stdout, os.Stderr
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGTERM)
		_ = run.Wait() // make reports the signal
	})
}

// TestMakeRunIsReachedByItsWebhooks knows of no certificate, no Service and no port:
// `steer dev` has the operator default, validate and convert.
func TestMakeRunIsReachedByItsWebhooks(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Fatal("no cluster: run this as `steer dev -- go test ./test/e2e`")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	makeRun(t)

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(ctrl.GetConfigOrDie(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// The configurations come once the operator serves, the validating one last.
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: "validating-webhook-configuration"}, &admissionv1.ValidatingWebhookConfiguration{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}

	site := &appsv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"}, Spec: appsv1.WebsiteSpec{Image: "nginx", Replicas: 2}}
	if err := c.Create(ctx, site); err != nil {
		t.Fatal(err)
	}
	if site.Spec.Image != "nginx:latest" {
		t.Errorf("the defaulter: the image is %q", site.Spec.Image)
	}
	many := site.DeepCopy()
	many.Spec.Replicas = 6
	if err := c.Update(ctx, many); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a website has 5 replicas at most") {
		t.Errorf("the validator: %v", err)
	}
	old := &v1alpha1.Website{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(site), old); err != nil {
		t.Fatal(err)
	}
	if old.Spec.Picture != "nginx:latest" || old.Spec.Replicas != 2 {
		t.Errorf("the conversion: %+v", old.Spec)
	}
	old.Spec.Picture = "caddy"
	if err := c.Update(ctx, old); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(site), site); err != nil {
		t.Fatal(err)
	}
	if site.Spec.Image != "caddy:latest" {
		t.Errorf("an update in v1alpha1 stores the image %q", site.Spec.Image)
	}
}
