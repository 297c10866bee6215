// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Stages are how far a control plane has come. They are safe for concurrent use.
type Stages struct {
	// Booted: what every cluster has is stored.
	Booted atomic.Bool
	// Announced: the address of the listener and the ways to authenticate are
	// stored. Set from the beginning where nothing listens.
	Announced atomic.Bool
	// Failure ended the built-in controllers.
	Failure atomic.Pointer[error]
}

// Progress returns what the health checks of parts ask.
func (s *Stages) Progress() Progress {
	done := func(what *atomic.Bool) func() error {
		return func() error {
			if !what.Load() {
				return errors.New("not finished")
			}
			return nil
		}
	}
	booted := done(&s.Booted)
	return Progress{
		Booted: booted, Announced: done(&s.Announced),
		Running: func() error {
			if failure := s.Failure.Load(); failure != nil {
				return fmt.Errorf("the built-in controllers have stopped: %w", *failure)
			}
			return booted()
		},
	}
}
