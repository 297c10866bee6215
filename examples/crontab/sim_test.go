// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

// TestACronTabSurvives lets two Jobs become due, and deletes the CronTab.
func TestACronTabSurvives(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		for n := range 2 {
			b.untilDue()
			jobs := b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == n+1 && len(running(jobs)) == 1 })
			b.finish(&running(jobs)[0])
			steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, active())
		}
		time.Sleep(10 * time.Second)
	})
}
