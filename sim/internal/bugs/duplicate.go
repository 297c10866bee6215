// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

// duplicate creates a Secret with a generated name and keeps the name in the status: what
// it has created is forgotten if it ends in between, or if the answer is lost.
type duplicate struct {
	client.Client
	mended bool
}

// Reconcile creates the Secret of a database that names none.
func (r duplicate) Reconcile(ctx context.Context, db *v1.Database) (controller.Result, error) {
	if db.Status.Holds != "" {
		return controller.Done(), nil
	}
	s := secret(db, "")
	if r.mended {
		if err := ensure(ctx, r.Client, db, s); err != nil {
			return controller.Result{}, err
		}
	} else {
		s.Name, s.GenerateName = "", db.Name+"-"
		if err := create(ctx, r.Client, db, s); err != nil {
			return controller.Result{}, err
		}
	}
	db.Status.Holds = s.Name
	return controller.Done(), nil
}

func duplicateBug() Bug {
	return Bug{
		Name:    "generated-name-forgotten",
		Shows:   "a second Secret after a crash after the creation, or a lost answer",
		Finding: "Secret default/db-~2 is there",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, duplicate{m.Client(), mended})
			}, database("db"))
			return func() {
				expectSecrets(env, 1)
				steertest.Wait(env, "default/db", func(db *v1.Database) bool { return db.Status.Holds != "" })
			}
		},
	}
}
