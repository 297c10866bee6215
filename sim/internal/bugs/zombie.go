// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"slices"
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

const zombieFinalizer = "bugs.example.com/zombie"

// zombie takes its finalizer away and goes on with the same reconcile, as zookeeper-operator#410
// and K8SPSMDB-590: where the garbage collector has been between the two, it creates a
// Secret whose owner is gone. It looks after its finalizer itself.
type zombie struct {
	client.Client
	mended bool
}

// Reconcile lets go of a database that is being deleted, and creates the Secret of any other.
func (r zombie) Reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	db := &v1.Database{}
	if err := r.Get(ctx, req.NamespacedName, db); err != nil {
		return controller.Result{}, client.IgnoreNotFound(err)
	}
	held := slices.Index(db.Finalizers, zombieFinalizer)
	switch {
	case db.DeletionTimestamp == nil && held < 0:
		db.Finalizers = append(db.Finalizers, zombieFinalizer)
		if err := r.Update(ctx, db); err != nil {
			return controller.Result{}, err
		}
	case db.DeletionTimestamp != nil && held >= 0:
		db.Finalizers = slices.Delete(db.Finalizers, held, held+1)
		if err := r.Update(ctx, db); err != nil {
			return controller.Result{}, client.IgnoreNotFound(err)
		}
		if r.mended {
			return controller.Done(), nil
		}
	case db.DeletionTimestamp != nil:
		return controller.Done(), nil
	}
	return controller.Done(), ensure(ctx, r.Client, db, secret(db, ""))
}

func zombieBug() Bug {
	return Bug{
		Name:    "zombie-after-finalizer",
		Shows:   "a Secret is created for a database that is gone, in orders in which the garbage collector acts between two writes",
		Finding: "Secret default/db, created for Database.bugs.example.com default/db, which was deleted before",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.AddRequests(m, "zombie", zombie{m.Client(), mended}, controller.Typed(
					controller.Watches(controller.Self[*v1.Database]()),
				))
			}, database("db"))
			if err := env.Client.Delete(env.Context(), database("db")); err != nil {
				t.Fatal(err)
			}
			steertest.WaitGone[*v1.Database](env, "default/db")
			env.Settled()
			return func() {
				expectSecrets(env, 0)
			}
		},
	}
}
