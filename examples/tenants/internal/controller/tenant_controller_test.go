// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
	platformv1alpha1 "github.com/steer-dev/steer/examples/tenants/api/v1alpha1"
)

const (
	tenantSample   = "config/samples/v1_tenant.yaml"
	databaseSample = "config/samples/v1_database.yaml"
)

// The function runs again and again: as it is, and with a crash or an error at each write.
func TestTenantGetsANamespace(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(t *testing.T) {
		env := steertest.New(t, options())
		env.Apply(tenantSample)
		tenant := steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
		if tenant.Spec.Plan != platformv1.Small || tenant.Spec.MaxDatabases != 2 {
			t.Errorf("the defaulter has left %+v", tenant.Spec)
		}
		env.ExpectNoWrites()
	})
}

// TestTenantIsConverted writes a Tenant in the old version, and reads it in both.
func TestTenantIsConverted(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, options())
	env.Apply("config/samples/v1alpha1_tenant.yaml")
	tenant := steertest.Expect[*platformv1.Tenant](env, "initech", steertest.Ready)
	if got := strings.Join(tenant.Spec.Owners, " "); got != "peter" || tenant.Spec.MaxDatabases != 10 {
		t.Errorf("in v1 it is %+v", tenant.Spec)
	}
	steertest.Update(env, "initech", func(t *platformv1.Tenant) { t.Spec.Owners = append(t.Spec.Owners, "michael") })
	old := steertest.Update(env, "initech", func(t *platformv1alpha1.Tenant) { t.Spec.Owner = "samir" })
	if old.Spec.Plan != platformv1.Large {
		t.Errorf("in v1alpha1 it is %+v", old.Spec)
	}
	env.Settled()
	binding := steertest.Wait(env, "tenant-initech/owners", func(*rbacv1.RoleBinding) bool { return true })
	if len(binding.Subjects) != 2 || binding.Subjects[0].Name != "samir" || binding.Subjects[1].Name != "michael" {
		t.Errorf("the owners are %v: a client of the old version has removed one", binding.Subjects)
	}
}

// TestOwnersOfATenantMakeDatabasesOfIt asks the roles of config/extras, of the tenant, and the
// webhooks.
func TestOwnersOfATenantMakeDatabasesOfIt(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, options())
	env.Apply(tenantSample)
	steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
	env.Settled()
	database := func(namespace, name, tenant string) *platformv1.Database {
		return &platformv1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: platformv1.DatabaseSpec{Tenant: tenant}}
	}
	alice, eve := env.AsUser("alice"), env.AsUser("eve")
	for _, step := range []struct {
		as      client.Client
		obj     client.Object
		refused string
	}{
		{eve, database("tenant-acme", "a", "acme"), `User "eve" cannot create resource "databases"`},
		{alice, database("default", "a", "acme"), `User "alice" cannot create resource "databases"`},
		{alice, database("tenant-acme", "a", "initech"), "there is no Tenant initech"},
		{env.Client, database("default", "a", "acme"), "Databases of the Tenant acme are in tenant-acme"},
		{alice, database("tenant-acme", "a", "acme"), ""},
		{alice, database("tenant-acme", "b", "acme"), ""},
		{alice, database("tenant-acme", "c", "acme"), "the Tenant acme has 2 Databases, and may have no more"},
		{env.Client, &platformv1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "kube-acme"}, Spec: platformv1.TenantSpec{Owners: []string{"a"}}}, "names that begin with kube- are those of Kubernetes"},
		{env.Client, &platformv1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 60)}, Spec: platformv1.TenantSpec{Owners: []string{"a"}}}, "would have more than 63 characters"},
	} {
		err := step.as.Create(t.Context(), step.obj)
		if step.refused == "" && err == nil {
			env.Settled() // the validator counts what the operator has seen
			continue
		}
		if err == nil || step.refused == "" || !strings.Contains(err.Error(), step.refused) {
			t.Errorf("%T %s: got %v, want %q", step.obj, step.obj.GetName(), err, step.refused)
		}
	}
	tenant := steertest.Wait(env, "acme", func(tenant *platformv1.Tenant) bool { return tenant.Status.Databases == 2 })
	tenant.Spec.MaxDatabases = 1
	if err := env.Client.Update(t.Context(), tenant); err == nil || !strings.Contains(err.Error(), "the tenant has 2: delete some first") {
		t.Errorf("fewer Databases than there are: %v", err)
	}
}

// TestFinalizersGoWhileTheWebhooksAreDown is what an administrator does when the operator cannot
// be brought back: objects that are being deleted are not sent to its webhooks.
func TestFinalizersGoWhileTheWebhooksAreDown(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, options())
	env.Apply(tenantSample)
	tenant := steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
	if len(tenant.Finalizers) == 0 {
		t.Fatal("the Tenant has no finalizer")
	}
	env.StopOperator()
	change := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	if err := env.Client.Patch(t.Context(), tenant, change); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a change while the webhooks are down: %v", err)
	}
	if err := env.Client.Delete(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Patch(t.Context(), tenant, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); !apierrors.IsNotFound(err) {
		t.Errorf("the Tenant is still there: %v", err)
	}
}

// TestTenantGoesAfterItsDatabases kills the operator after each of its writes meanwhile.
func TestTenantGoesAfterItsDatabases(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, options())
	env.Apply(tenantSample)
	steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
	env.Apply(databaseSample)
	steertest.Expect[*platformv1.Database](env, "tenant-acme/orders", steertest.Ready)
	if err := env.Client.Delete(t.Context(), &platformv1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}); err != nil {
		t.Fatal(err)
	}
	steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Condition(controller.ReconcilingCondition, metav1.ConditionTrue, "Deleting"))
	steertest.KillAfterEveryWriteUntilGone[*platformv1.Tenant](env, "acme", func() {
		if err := env.Client.Delete(t.Context(), &platformv1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "orders"}}); err != nil {
			t.Error(err)
		}
	})
	steertest.WaitGone[*corev1.Namespace](env, "tenant-acme")
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: "tenant-acme", Name: "orders-password"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the password is left: %v", err)
	}
}

// TestReplicaGoesOn has one replica of the operator die, and another one go on.
func TestReplicaGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Args = []string{"--leader-elect"}
		env := steertest.New(t, o)
		env.Apply(tenantSample)
		env.Settled()
		first := env.StartReplica()
		env.StopOperator()
		env.Settled()
		env.StartReplica()
		first.Kill()
		env.Apply("config/samples/v1alpha1_tenant.yaml")
		steertest.Expect[*platformv1.Tenant](env, "initech", steertest.Ready)
	})
}
