// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bugs is small operators with one bug each, for the proof that simulation finds
// them: all reconcile one kind, work where nothing goes wrong, and have a switch that mends
// them. Most are after bugs of operators that are in use.
//
// Nothing in the detectors of package sim may know of what is here.
package bugs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

// Bug is an operator with a bug, and a test of it that passes.
type Bug struct {
	Name string
	// Shows is what is to be seen of it, and at which faults.
	Shows string
	// Finding is part of what package ends or the engine says of a run that shows it.
	Finding string
	// Scenario makes an environment with the operator, and has its user do something; it
	// belongs into a bubble of synctest. It asserts nothing, so that a simulation has to
	// find the bug by itself; check asserts what there is to be at the end.
	Scenario func(t *testing.T, mended bool) (check func())
}

// Test returns the scenario as a test that asserts nothing.
func (b Bug) Test(mended bool) func(*testing.T) {
	return func(t *testing.T) { b.Scenario(t, mended) }
}

// All are the bugs.
func All() []Bug {
	return []Bug{
		pairBug(), sizeBug(), zombieBug(), flipBug(), duplicateBug(), volumeBug(), memoryBug(),
	}
}

// Leak creates a Secret that nothing deletes with its database. It is no row of [All]: it
// needs no fault, so that a comparison with a run without faults shows nothing.
func Leak() Bug {
	return Bug{
		Name: "no-owner", Shows: "the Secret is left after the deletion of the database", Finding: "Secret default/db",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, controller.Func[*v1.Database](func(ctx context.Context, db *v1.Database) (controller.Result, error) {
					controller.SetReady(db, &db.Status.Conditions, "Created", "it has its Secret")
					if mended {
						return controller.Done(), ensure(ctx, m.Client(), db, secret(db, ""))
					}
					return controller.Done(), client.IgnoreAlreadyExists(m.Client().Create(ctx, secret(db, "")))
				}))
			}, database("db"))
			if err := env.Client.Delete(env.Context(), database("db")); err != nil {
				t.Fatal(err)
			}
			env.Settled()
			return func() { expectSecrets(env, 0) }
		},
	}
}

// gvk is the kind that all of them reconcile.
func gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "bugs.example.com", Version: "v1", Kind: "Database"}
}

// newEnv runs an operator, and creates the databases.
func newEnv(t *testing.T, setup func(context.Context, *manager.Manager) error, databases ...*v1.Database) *steertest.Env {
	env := steertest.New(t, steertest.Options{
		CRDs: []string{"sim/internal/bugs/config/crd/bases"}, Role: steertest.Administrator,
		Operator: steer.Operator{Name: "bugs", Scheme: steer.Scheme{v1.AddToScheme, corev1.AddToScheme}, Setup: setup},
	})
	for _, db := range databases {
		env.Create(db)
	}
	env.Settled()
	return env
}

func database(name string) *v1.Database {
	return &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: v1.DatabaseSpec{Size: 1}}
}

func secret(db *v1.Database, suffix string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name + suffix},
		StringData: map[string]string{"for": db.Name},
	}
}

// create creates a child of a database.
func create(ctx context.Context, c client.Client, db *v1.Database, child client.Object) error {
	if err := controller.SetOwner(db, gvk(), child); err != nil {
		return err
	}
	return c.Create(ctx, child)
}

// ensure creates a child that is not there.
func ensure(ctx context.Context, c client.Client, db *v1.Database, child client.Object) error {
	return client.IgnoreAlreadyExists(create(ctx, c, db, child))
}

// expectSecrets asserts how many there are.
func expectSecrets(env *steertest.Env, want int) {
	env.Helper()
	var list corev1.SecretList
	if err := env.Client.List(env.Context(), &list, client.InNamespace(env.Namespace)); err != nil {
		env.Fatal(err)
	}
	if len(list.Items) != want {
		env.Errorf("%d Secrets, want %d", len(list.Items), want)
	}
}
