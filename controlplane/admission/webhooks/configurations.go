// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/storage"
)

// configurations are the stored configurations of one kind. They are in force with the
// answer of their write: each request compares the revision of their last change.
type configurations[T any] struct {
	d       *match.Deps
	stored  *admission.Lister[T]
	compile func(*T) []*hook

	building sync.Mutex
	now      atomic.Pointer[inForce[T]]
}

// inForce are the configurations as of one revision. It is immutable.
type inForce[T any] struct {
	at    storage.Revision
	index *match.Index[*hook]
	// compiled by configuration; those that stay the same are not compiled again.
	compiled map[*T][]*hook
}

// current returns the index of all hooks, in the order in which they are called.
func (c *configurations[T]) current(ctx context.Context) (*match.Index[*hook], error) {
	at, err := c.stored.LastModified(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if now := c.now.Load(); now != nil && now.at >= at {
		return now.index, nil
	}
	c.building.Lock()
	defer c.building.Unlock()
	before := c.now.Load()
	if before != nil && before.at >= at {
		return before.index, nil
	}
	objects, err := c.stored.All(ctx, "")
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	next := &inForce[T]{at: at, compiled: make(map[*T][]*hook, len(objects))}
	var all []*hook
	for _, obj := range objects {
		var hooks []*hook
		known := false
		if before != nil {
			hooks, known = before.compiled[obj]
		}
		if !known {
			hooks = c.compile(obj)
		}
		next.compiled[obj] = hooks
		all = append(all, hooks...)
	}
	next.index = match.NewIndex(c.d, all, func(h *hook) *match.Constraints { return h.constraints })
	c.now.Store(next)
	return next.index, nil
}
