// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

// cloud is a system outside of the API server that has volumes.
type cloud struct {
	mu      sync.Mutex
	volumes map[string]string // id by token
}

// create creates a volume. One with the token of another is that other one.
func (c *cloud) create(token string) (id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if token == "" {
		token = fmt.Sprint("number ", len(c.volumes)+1)
	}
	if c.volumes[token] == "" {
		c.volumes[token] = fmt.Sprint("volume-", len(c.volumes)+1)
	}
	return c.volumes[token]
}

func (c *cloud) holds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.volumes)
}

// volume creates a volume in a cloud and keeps its id in the status. It gives no token, so
// that the cloud cannot know a second attempt.
type volume struct {
	client.Client
	mended bool
	create func(token string) (id string, err error)
}

// Reconcile creates the volume of a database that has none.
func (r volume) Reconcile(_ context.Context, db *v1.Database) (controller.Result, error) {
	if db.Status.Holds != "" {
		return controller.Done(), nil
	}
	token := ""
	if r.mended {
		token = string(db.UID)
	}
	id, err := r.create(token)
	if err != nil {
		return controller.Result{}, err
	}
	db.Status.Holds = id
	return controller.Done(), nil
}

func volumeBug() Bug {
	return Bug{
		Name:    "volume-without-token",
		Shows:   "the cloud holds two volumes after a crash after the creation, or a lost answer",
		Finding: "status.holds is \"volume-2\"",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			outside := &cloud{volumes: map[string]string{}}
			var env *steertest.Env
			create := func(token string) (id string, err error) {
				err = env.Outside("create volume", func() error { id = outside.create(token); return nil })
				return id, err
			}
			env = newEnv(t, func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, volume{m.Client(), mended, create})
			})
			env.Create(database("db"))
			env.Settled()
			return func() {
				if n := outside.holds(); n != 1 {
					t.Errorf("the cloud holds %d volumes, want 1", n)
				}
				steertest.Wait(env, "default/db", func(db *v1.Database) bool { return db.Status.Holds == "volume-1" })
			}
		},
	}
}
