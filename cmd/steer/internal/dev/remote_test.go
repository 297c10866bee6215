// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// foreign is a control plane that is not the project's, in a kubeconfig.
func foreign(t *testing.T) (*cluster.Context, client.Client) {
	t.Helper()
	plane := startedPlane(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := plane.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	at, err := cluster.Find(file, "steer")
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := client.NewScheme(coordinationv1.AddToScheme, func(s *runtime.Scheme) error {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "webapp.example.com", Version: "v1", Kind: "Guestbook"}, &guestbook{})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(at.Config, client.Options{Scheme: scheme, FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return at, c
}

func TestDevInAClusterInstallsAfterConfirmationAndHoldsTheLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: gvk}); err != nil {
		t.Fatal(err)
	}
	at, c := foreign(t)
	key := client.ObjectKey{Namespace: "guestbook-system", Name: "guestbook"}

	// Unconfirmed: the plan is printed, and nothing is there.
	var said strings.Builder
	o := options(t, dir, &said)
	o.Remote = &Remote{Context: at, Confirm: func(context.Context, string) error { return ErrUnconfirmed }}
	if err := Project(t.Context(), o); !errors.Is(err, ErrUnconfirmed) {
		t.Fatalf("unconfirmed: %v", err)
	}
	for _, line := range []string{"steer: context steer, https://127.0.0.1:", "create     Namespace guestbook-system\n", "create     CustomResourceDefinition guestbooks.webapp.example.com\n", "create     ClusterRole guestbook-manager-role\n"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("%q was not printed:\n%s", line, said.String())
		}
	}
	namespace := client.NewMetadata(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: "guestbook-system"}, namespace); !apierrors.IsNotFound(err) {
		t.Fatalf("the namespace was made: %v", err)
	}

	// Confirmed: the operator reconciles under its role, and this process holds the lease.
	d := begin(t, dir, func(o *Options) { o.Remote = &Remote{Context: at} })
	d.client, d.server = c, at.Config.Host
	d.await("create     ServiceAccount guestbook-system/guestbook-controller-manager")
	d.await("the operator runs")
	sample := &guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guestbook-sample"}}
	if err := c.Create(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	d.reconciled("the cluster is as the spec says")
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), key, lease); err != nil || !strings.HasPrefix(*lease.Spec.HolderIdentity, "steer-dev_") {
		t.Errorf("the lease is held by %v, %v", lease.Spec.HolderIdentity, err)
	}
	o = options(t, dir, io.Discard)
	o.Remote = &Remote{Context: at}
	var held *cluster.HeldError
	if err := Project(t.Context(), o); !errors.As(err, &held) || held.Holder != *lease.Spec.HolderIdentity {
		t.Errorf("a second one: %v", err)
	}

	// What a save changes is printed and applied.
	d.save("api/v1/guestbook_types.go", "\t// +optional\n\tFoo string", "\t// +kubebuilder:validation:MaxLength=9\n\t// +optional\n\tFoo string")
	d.await("change     CustomResourceDefinition guestbooks.webapp.example.com")
	d.await("maxLength: none -> 9")
	d.await("the operator runs")

	// Another process takes the lease: the operator is stopped.
	other := "guestbook-controller-manager"
	takes := client.MergeFrom(lease.DeepCopy())
	lease.Spec.HolderIdentity = &other
	if err := c.Patch(t.Context(), lease, takes); err != nil {
		t.Fatal(err)
	}
	if err := d.ended(); !errors.Is(err, manager.ErrLostLease) {
		t.Errorf("after the lease was lost: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, project.StateDir, "data")); !os.IsNotExist(err) {
		t.Errorf("a control plane of the project's own has data: %v", err)
	}
}
