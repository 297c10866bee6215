// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/steer-dev/steer/controlplane/part"
)

// progress is how far a plane has come, for its health checks. It is safe for
// concurrent use.
type progress struct {
	// booted: what every cluster has is stored.
	booted atomic.Bool
	// announced: the address of the listener and the ways to authenticate are
	// stored. Set from the beginning where nothing listens.
	announced atomic.Bool
	// failure ended the built-in controllers.
	failure atomic.Pointer[error]
}

// checks returns what the health checks of parts ask.
func (p *progress) checks() part.Progress {
	done := func(what *atomic.Bool) func() error {
		return func() error {
			if !what.Load() {
				return errors.New("not finished")
			}
			return nil
		}
	}
	booted := done(&p.booted)
	return part.Progress{
		Booted: booted, Announced: done(&p.announced),
		Running: func() error {
			if failure := p.failure.Load(); failure != nil {
				return fmt.Errorf("the built-in controllers have stopped: %w", *failure)
			}
			return booted()
		},
	}
}
