// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"time"

	"github.com/steer-dev/steer/controlplane"
)

// stopGrace is how long a control plane may take to stop.
const stopGrace = 10 * time.Second

// history is how long steer history finds versions, within the bytes of the history.
const history = time.Hour

// StartPlane starts a control plane with an hour of history; the returned function stops it.
func StartPlane(ctx context.Context, o controlplane.Options) (*controlplane.Plane, func() error, error) {
	o.HistoryAge = history
	plane, err := controlplane.New(o)
	if err != nil {
		return nil, nil, err
	}
	stop := func() error {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		return plane.Stop(grace)
	}
	if err := plane.Start(ctx); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return plane, stop, nil
}
