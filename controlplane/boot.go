// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// boot creates and mends what every cluster has; see [part.Part].
func (p *Plane) boot(ctx context.Context) error {
	view := p.store.Latest()
	writes, requests, err := p.list.Boot(view, time.Now())
	if err != nil {
		return fmt.Errorf("controlplane: make the first objects: %w", err)
	}
	if err := p.commitAll(ctx, writes); err != nil {
		return fmt.Errorf("controlplane: create the first objects: %w", err)
	}
	for _, r := range requests {
		if err := p.send(ctx, r); err != nil {
			return fmt.Errorf("controlplane: restore the first objects: %w", err)
		}
	}
	return nil
}

// commitAll stores new objects; those that exist by now stay as they are. A store that
// waits for a disk gets all of them at once, so that one flush does for all; one in memory
// gets them in their order.
func (p *Plane) commitAll(ctx context.Context, writes []storage.Write) error {
	commit := func(w storage.Write) error {
		_, err := p.store.Commit(ctx, w)
		if errors.Is(err, storage.ErrConflict) {
			return nil
		}
		return err
	}
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	for i, w := range writes {
		if p.options.DataDir == "" {
			errs[i] = commit(w)
			continue
		}
		all.Go(func() { errs[i] = commit(w) })
	}
	all.Wait()
	return errors.Join(errs...)
}
