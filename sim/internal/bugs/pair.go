// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

// pair creates two Secrets behind one check: that of the first. It is K8SPSMDB-578: the
// operator that ends between the two never creates the second.
type pair struct {
	client.Client
	mended bool
}

// Reconcile creates the Secrets.
func (r pair) Reconcile(ctx context.Context, db *v1.Database) (controller.Result, error) {
	first, second := secret(db, "-ssl"), secret(db, "-ssl-internal")
	if r.mended { // each has a check of its own
		for _, s := range []*corev1.Secret{first, second} {
			if err := r.createMissing(ctx, db, s); err != nil {
				return controller.Result{}, err
			}
		}
	} else if err := r.Get(ctx, client.ObjectKeyFromObject(first), &corev1.Secret{}); apierrors.IsNotFound(err) {
		if err := ensure(ctx, r.Client, db, first); err != nil {
			return controller.Result{}, err
		}
		if err := ensure(ctx, r.Client, db, second); err != nil {
			return controller.Result{}, err
		}
	} else if err != nil {
		return controller.Result{}, err
	}
	controller.SetReady(db, &db.Status.Conditions, "Encrypted", "it has its certificates")
	return controller.Done(), nil
}

func (r pair) createMissing(ctx context.Context, db *v1.Database, s *corev1.Secret) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(s), &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		err = ensure(ctx, r.Client, db, s)
	}
	return err
}

func pairBug() Bug {
	return Bug{
		Name:    "pair-guarded-by-first",
		Shows:   "the second Secret is missing after a crash after the first, or an error for the second",
		Finding: "Secret default/db-ssl-internal is missing",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, pair{m.Client(), mended}, controller.Owns[*corev1.Secret]())
			}, database("db"))
			return func() {
				expectSecrets(env, 2)
				steertest.Expect[*v1.Database](env, "default/db", steertest.Ready)
			}
		},
	}
}
