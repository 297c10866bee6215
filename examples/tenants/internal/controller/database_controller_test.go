// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
)

// The function runs again and again: as it is, and with a crash or an error at each write.
func TestDatabaseComesUpInOrder(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(t *testing.T) {
		env := steertest.New(t, options())
		env.Apply(tenantSample)
		steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
		env.Apply(databaseSample)
		steertest.Expect[*platformv1.Database](env, "tenant-acme/orders", steertest.Ready)
		env.ExpectNoWrites()
	})
}

// TestSchemaIsBroughtUpByANewJob changes what cannot be changed in a Job, and looks at what
// stays: the password.
func TestSchemaIsBroughtUpByANewJob(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, options())
	env.Apply(tenantSample)
	steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
	env.Apply(databaseSample)
	steertest.Expect[*platformv1.Database](env, "tenant-acme/orders", steertest.Ready)
	password := steertest.Wait(env, "tenant-acme/orders-password", func(*corev1.Secret) bool { return true })
	job := steertest.Wait(env, "tenant-acme/orders-schema", func(*batchv1.Job) bool { return true })
	steertest.Update(env, "tenant-acme/orders", func(db *platformv1.Database) { db.Spec.Schema = "2" })
	steertest.Wait(env, "tenant-acme/orders", func(db *platformv1.Database) bool { return db.Status.Schema == "2" })
	if again := steertest.Wait(env, "tenant-acme/orders-schema", func(*batchv1.Job) bool { return true }); again.UID == job.UID {
		t.Error("it is the same Job")
	}
	if again := steertest.Wait(env, "tenant-acme/orders-password", func(*corev1.Secret) bool { return true }); string(again.Data["password"]) != string(password.Data["password"]) {
		t.Error("it is another password")
	}
}

// TestServersThatDoNotStartAreWaitedFor: no tables without servers.
func TestServersThatDoNotStartAreWaitedFor(t *testing.T) {
	t.Parallel()
	o := options()
	o.Workloads = steertest.Workloads(workloads.Outcome{Selector: "platform.example.com/database=orders", Fate: workloads.CrashLoop})
	env := steertest.New(t, o)
	env.Apply(tenantSample)
	steertest.Expect[*platformv1.Tenant](env, "acme", steertest.Ready)
	env.Apply(databaseSample)
	steertest.Wait(env, "tenant-acme/orders", func(db *platformv1.Database) bool {
		ready := meta.FindStatusCondition(db.Status.Conditions, "Ready")
		return ready != nil && ready.Message == "waits for StatefulSet orders: 0 of 2 ready, Pod orders-0: CrashLoopBackOff"
	})
	steertest.WaitGone[*batchv1.Job](env, "tenant-acme/orders-schema")
}

// TestViewersMayLookAtTenantsAndEditorsMakeThem by the roles that the project has for people.
func TestViewersMayLookAtTenantsAndEditorsMakeThem(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, options())
	for _, who := range []string{"viewer", "editor"} {
		env.Create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: who},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenants-tenant-" + who + "-role"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}},
		})
	}
	tenant := &platformv1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: platformv1.TenantSpec{Owners: []string{"jane"}}}
	if err := env.AsUser("viewer").Create(t.Context(), tenant.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer creates: %v", err)
	}
	if err := env.AsUser("editor").Create(t.Context(), tenant); err != nil {
		t.Errorf("an editor creates: %v", err)
	}
	if err := env.AsUser("viewer").Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
		t.Errorf("a viewer reads: %v", err)
	}
}
