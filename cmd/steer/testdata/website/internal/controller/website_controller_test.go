// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	websitev1 "example.com/website/api/v1"
	"example.com/website/internal/controller"
)

// TestWebsiteIsServedByADeployment runs the operator against the cluster that
// KUBECONFIG names: `steer dev --crds config/crd/bases -- go test ./internal/...`.
func TestWebsiteIsServedByADeployment(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" {
		t.Fatal("no cluster: run this as `steer dev --crds config/crd/bases -- go test ./internal/...`")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, websitev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cfg := ctrl.GetConfigOrDie()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&controller.WebsiteReconciler{Client: mgr.GetClient(), Scheme: scheme}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	managed, stop := context.WithCancel(ctx)
	go func() { stopped <- mgr.Start(managed) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("manager: %v", err)
		}
	})

	direct, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	site := &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: "home", Namespace: "default"},
		Spec:       websitev1.WebsiteSpec{Image: "nginx", Replicas: 2},
	}
	if err := direct.Create(ctx, site); err != nil {
		t.Fatal(err)
	}
	watch, err := direct.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	scaled := false
	for event := range watch.ResultChan() {
		deployment, ok := event.Object.(*appsv1.Deployment)
		if !ok || deployment.Name != "home" || deployment.Spec.Replicas == nil {
			continue
		}
		if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != site.UID {
			t.Fatalf("the deployment is not owned by the website: %v", deployment.OwnerReferences)
		}
		switch {
		case *deployment.Spec.Replicas == 2 && !scaled:
			scaled = true
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))
			if err := direct.Patch(ctx, site, patch); err != nil {
				t.Fatal(err)
			}
		case *deployment.Spec.Replicas == 3:
			return
		}
	}
	t.Fatal("the deployment never had three replicas")
}
