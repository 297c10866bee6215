// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crontab is an operator: a CronTab starts a Job at each of its due
// times, keeps a few finished ones, and reports what runs.
//
// The API is in api/v1, its generated manifests in config, the program in cmd.
package crontab

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/manager"
)

// Name of the operator.
const Name = "crontab-operator"

// Finalizer that lets the operator stop the Jobs of a CronTab that goes away.
const Finalizer = "stable.example.com/cleanup"

// Clock tells the time to the operator. The zero value is the wall clock.
type Clock struct {
	// Now is the current time; nil means time.Now.
	Now func() time.Time
	// Moved names the CronTabs to look at again because the time has jumped;
	// nil means that it never does.
	Moved <-chan controller.Request
}

// Operator returns the operator on a clock.
func Operator(clock Clock) steer.Operator {
	return steer.Operator{
		Name:   Name,
		Scheme: steer.Scheme{v1.AddToScheme, batchv1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			if clock.Now == nil {
				clock.Now = time.Now
			}
			r := &Reconciler{client: m.Client(), now: clock.Now}
			return controller.Add(m, r,
				controller.Owns[*batchv1.Job](),
				controller.Finalizer(Finalizer, r.Cleanup),
				controller.From(controller.Channel(clock.Moved)),
				controller.Concurrency(4))
		},
	}
}
