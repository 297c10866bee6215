// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crontab is an operator: a CronTab starts a Job at each of its due
// times, keeps a few finished ones, and reports what runs.
//
// The API is in api/v1, and as it was before in api/v1beta1; its generated manifests are in
// config, the program is in cmd. Schedules are completed and validated by webhooks.
package crontab

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/examples/crontab/api/v1beta1"
	"github.com/steer-dev/steer/manager"
)

// Name of the operator.
const Name = "crontab-operator"

// Finalizer that lets the operator stop the Jobs of a CronTab that goes away.
const Finalizer = "stable.example.com/cleanup"

// Operator returns the operator. It has no clock to be set for tests: they run in
// virtual time; see docs/time.md.
func Operator() steer.Operator {
	return steer.Operator{
		Name:   Name,
		Scheme: steer.Scheme{v1.AddToScheme, v1beta1.AddToScheme, batchv1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return errors.Join((&Reconciler{}).Add(m), AddWebhooks(m))
		},
	}
}

// Add adds the controller to a manager, with more options if there are any.
func (r *Reconciler) Add(m *manager.Manager, more ...controller.Option) error {
	r.client = m.Client()
	return controller.Add(m, r, append(more,
		controller.Owns[*batchv1.Job](),
		controller.Finalizer(Finalizer, r.Cleanup),
		controller.Concurrency(4))...)
}
