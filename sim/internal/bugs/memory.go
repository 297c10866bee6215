// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
)

// memory remembers which databases have their Secret, to save requests, and notes it
// before the Secret is there: after an error it believes itself.
type memory struct {
	client.Client
	mended bool

	mu   sync.Mutex
	done map[types.UID]bool
}

// Reconcile creates the Secret of a database that it has not seen.
func (r *memory) Reconcile(ctx context.Context, db *v1.Database) (controller.Result, error) {
	if r.has(db.UID) {
		return controller.Done(), nil
	}
	if !r.mended {
		r.note(db.UID)
	}
	if err := ensure(ctx, r.Client, db, secret(db, "")); err != nil {
		return controller.Result{}, err
	}
	r.note(db.UID)
	return controller.Done(), nil
}

func (r *memory) has(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done[uid]
}

func (r *memory) note(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[uid] = true
}

func memoryBug() Bug {
	return Bug{
		Name:    "noted-before-done",
		Shows:   "the Secret is missing after an error for its creation",
		Finding: "Secret default/db is missing",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, &memory{Client: m.Client(), mended: mended, done: map[types.UID]bool{}}, controller.Owns[*corev1.Secret]())
			}, database("db"))
			return func() {
				expectSecrets(env, 1)
			}
		},
	}
}
