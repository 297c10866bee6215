// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
)

// idler is a part that can tell when it has nothing left to do. Controllers are.
type idler interface {
	Idle(ctx context.Context) error
}

// Idle waits until the caches show what the API server has, no controller has a
// request that is ready, runs or waits for the retry of a failure, and the
// events that were emitted have been sent. Requests that come back after a second
// or more, and signals from outside the API server, do not count. It is for tests: it
// lists every watched kind. When ctx ends first the error tells what is left.
func (m *Manager) Idle(ctx context.Context) error {
	select {
	case <-m.elected:
	case <-ctx.Done():
		return fmt.Errorf("manager: the controllers have not started: %w", context.Cause(ctx))
	}
	if err := m.cache.CatchUp(ctx); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	m.mu.Lock()
	parts := slices.Concat(m.parts[leading], m.parts[always])
	m.mu.Unlock()
	for _, part := range parts {
		if p, ok := part.(idler); ok {
			if err := p.Idle(ctx); err != nil {
				return fmt.Errorf("manager: %w", err)
			}
		}
	}
	if err := m.events.Idle(ctx); err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return nil
}
