// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// What a control plane does for itself when it boots, as its log says it.
const (
	creating  = "create the objects that every cluster has"
	restoring = "restore the objects that every cluster has"
)

// Booting is how a list of parts makes what every cluster has.
type Booting struct {
	List   List
	Store  storage.Store
	Send   step.Sender
	Upkeep *Upkeep
	// AtOnce commits all new objects at the same time, so that one flush of a disk does for
	// all; otherwise they come in their order.
	AtOnce bool
	// Later leaves what may be refused, or wait for others, to [Upkeep.Run].
	Later bool
}

// Boot makes what [Component.Boot] misses. What fails is tried again by the upkeep.
func (b Booting) Boot(ctx context.Context) error {
	writes, requests, err := b.List.Boot(b.Store.Latest(), time.Now())
	if err != nil {
		return fmt.Errorf("make the first objects: %w", err)
	}
	b.Upkeep.Try(ctx, creating, func(ctx context.Context) error { return b.commit(ctx, writes) })
	switch {
	case len(requests) == 0:
	case b.Later:
		b.Upkeep.Due(restoring, b.restore)
	default:
		b.Upkeep.Try(ctx, restoring, b.restore)
	}
	return nil
}

// restore gives back to what every cluster has what was taken from it, by requests, which may
// be refused each for itself.
func (b Booting) restore(ctx context.Context) error {
	_, requests, err := b.List.Boot(b.Store.Latest(), time.Now())
	errs := []error{err}
	for _, r := range requests {
		errs = append(errs, b.Send(ctx, r))
	}
	return errors.Join(errs...)
}

// commit stores new objects; those that exist by now stay as they are.
func (b Booting) commit(ctx context.Context, writes []storage.Write) error {
	commit := func(w storage.Write) error {
		_, err := b.Store.Commit(ctx, w)
		if errors.Is(err, storage.ErrConflict) {
			return nil
		}
		return err
	}
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	for i, w := range writes {
		if !b.AtOnce {
			errs[i] = commit(w)
			continue
		}
		all.Go(func() { errs[i] = commit(w) })
	}
	all.Wait()
	return errors.Join(errs...)
}
