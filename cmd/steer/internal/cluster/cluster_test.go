// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/manager"
)

// patience bounds what a test waits for.
const patience = time.Minute

// plane is a control plane that ends with the test.
func plane(t *testing.T) *controlplane.Plane {
	t.Helper()
	p, err := controlplane.New(controlplane.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := p.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme, err := client.NewScheme(coordinationv1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{FieldOwner: "test", Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: made}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: books.example.com}
spec:
  group: example.com
  names: {kind: Book, plural: books}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: made}
rules:
- {apiGroups: [example.com], resources: [books], verbs: [get, list]}
`

func TestPlanSaysWhatAnApplyChangesAndAppliesIt(t *testing.T) {
	t.Parallel()
	c := newClient(t, plane(t).RESTConfig())
	examine := func(text string) cluster.Plan {
		t.Helper()
		objects, err := manifest.Parse("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := cluster.Examine(t.Context(), c, objects)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	expect := func(plan cluster.Plan, want string) {
		t.Helper()
		if got := plan.String(); got != want {
			t.Errorf("got:\n%swant:\n%s", got, want)
		}
	}
	plan := examine(manifests)
	expect(plan, "create     Namespace made\ncreate     CustomResourceDefinition books.example.com\ncreate     Role made/reader\n")
	expect(examine(manifests), plan.String()) // nothing was persisted
	if err := plan.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	plan = examine(manifests)
	expect(plan, "unchanged  Namespace made\nunchanged  CustomResourceDefinition books.example.com\nunchanged  Role made/reader\n")
	if !plan.Empty() {
		t.Error("the plan is not empty")
	}
	plan = examine(strings.NewReplacer("verbs: [get, list]", "verbs: [get]", "kind: Book,", "kind: Book, shortNames: [b],").Replace(manifests))
	expect(plan, `unchanged  Namespace made
change     CustomResourceDefinition books.example.com
             spec.names.shortNames: none -> ["b"]
change     Role made/reader
             rules[0].verbs[1]: "list" -> none
`)
	if plan.Empty() {
		t.Error("the plan is empty")
	}
}

func TestContextsAreFoundByName(t *testing.T) {
	t.Parallel()
	p := plane(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Find(file, "prod"); !errors.Is(err, cluster.ErrNoContext) || !strings.Contains(err.Error(), `no context "prod", but steer`) {
		t.Errorf("got %v", err)
	}
	found, err := cluster.Find(file, "steer")
	if err != nil || !strings.HasPrefix(found.Config.Host, "https://127.0.0.1:") {
		t.Fatalf("got %v", err)
	}
	as := filepath.Join(t.TempDir(), "kubeconfig")
	if err := found.WriteKubeconfig(as, "made", "operator"); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.Config(as)
	if err != nil || config.Impersonate.UserName != "system:serviceaccount:made:operator" {
		t.Errorf("the impersonated user is %q, %v", config.Impersonate.UserName, err)
	}
}

func TestLeaseIsRefusedTakenHeldAndLost(t *testing.T) {
	t.Parallel()
	config := plane(t).RESTConfig()
	c := newClient(t, config)
	lease := &cluster.Lease{Config: config, Operator: "guestbook", Namespace: "default", Identity: "me"}
	if err := lease.Check(t.Context()); err != nil {
		t.Errorf("there is no lease: %v", err)
	}
	holder, duration, now := "another", int32(3600), metav1.NowMicro()
	other := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guestbook"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &duration, AcquireTime: &now, RenewTime: &now},
	}
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	want := "the lease default/guestbook is held by another since " + now.Format(time.RFC3339)
	var held *cluster.HeldError
	if err := lease.Check(t.Context()); !errors.As(err, &held) || !strings.Contains(err.Error(), want) {
		t.Errorf("a held lease: %v", err)
	}
	if _, err := lease.Take(t.Context(), false); !errors.As(err, &held) {
		t.Errorf("taking a held lease: %v", err)
	}
	former, err := lease.Take(t.Context(), true)
	if err != nil || former < 30*time.Minute || former > time.Hour {
		t.Errorf("the former holder may go on for %s, %v", former, err)
	}
	err = lease.Hold(t.Context(), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil || *other.Spec.HolderIdentity != "me" {
			t.Errorf("the holder is %v, %v", other.Spec.HolderIdentity, err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("holding the lease: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || *other.Spec.HolderIdentity != "" {
		t.Errorf("after it was given up, the holder is %v, %v", other.Spec.HolderIdentity, err)
	}

	lease = &cluster.Lease{Config: config, Operator: "guestbook", Namespace: "default", Identity: "me again"}
	if _, err := lease.Take(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = lease.Hold(ctx, func(ctx context.Context) error {
		takes := client.MergeFrom(other.DeepCopy())
		other.Spec.HolderIdentity = &holder
		if err := c.Patch(ctx, other, takes); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, manager.ErrLostLease) {
		t.Errorf("a lost lease: %v", err)
	}
}
