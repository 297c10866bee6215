// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// minutely is a CronJob that starts a Job every minute.
func minutely(name string) *batchv1.CronJob {
	out := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	out.Spec.Schedule, out.Spec.JobTemplate.Spec = "* * * * *", job("x").Spec
	return out
}

func (c *cluster) jobNames() (out []string) {
	c.Helper()
	var list batchv1.JobList
	c.list(&list)
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	slices.Sort(out)
	return out
}

// schedules are the Events of CronJobs.
func (c *cluster) schedules() []string {
	c.Helper()
	return slices.DeleteFunc(c.events(), func(line string) bool { return !strings.Contains(line, " CronJob ") })
}

func TestCronJobStartsTheLatestMissedJobWhenResumed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pause    time.Duration
		deadline *int64
		jobs     int
		events   []string
	}{
		"a few":            {pause: time.Hour, jobs: 1, events: []string{"cronjob-controller CronJob SuccessfulCreate: Created job "}},
		"within deadline":  {pause: 3 * time.Hour, deadline: new(int64(40)), jobs: 1, events: []string{"cronjob-controller CronJob SuccessfulCreate: Created job "}},
		"after a deadline": {pause: 3 * time.Hour, deadline: new(int64(20))},
		"many": {pause: 3 * time.Hour, jobs: 1, events: []string{
			"! cronjob-controller CronJob TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
			"cronjob-controller CronJob SuccessfulCreate: Created job ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, workloads.Outcome{Fate: workloads.Never})
				cron := minutely("tick")
				cron.Spec.Suspend, cron.Spec.StartingDeadlineSeconds = new(true), test.deadline
				c.Create(cron)
				c.settle()
				time.Sleep(test.pause + 30*time.Second) // the clock begins with a full minute
				c.settle()
				equal(t, "jobs while suspended", 0, len(c.jobNames()))
				due := time.Now().Unix() / 60
				c.get("tick", cron)
				cron.Spec.Suspend = new(false)
				c.update(cron)
				c.settle()
				var want []string
				if test.jobs > 0 {
					want = []string{fmt.Sprintf("tick-%d", due)}
				}
				equal(t, "jobs", want, c.jobNames())
				var events []string
				for _, line := range c.schedules() {
					events = append(events, strings.TrimSuffix(line, fmt.Sprintf("tick-%d", due)))
				}
				equal(t, "events", test.events, events)
				time.Sleep(30 * time.Second)
				c.settle()
				equal(t, "jobs a minute later", test.jobs+1, len(c.jobNames()))
			})
		})
	}
}

func TestCronJobDropsDeletedJobsFromItsStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Fate: workloads.Never})
		c.Create(minutely("tick"))
		c.settle()
		time.Sleep(time.Minute)
		c.settle()
		var cron batchv1.CronJob
		c.get("tick", &cron)
		equal(t, "active", 1, len(cron.Status.Active))
		name := c.jobNames()[0]
		c.delete(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}})
		c.settle()
		c.get("tick", &cron)
		equal(t, "active without the Job", 0, len(cron.Status.Active))
		equal(t, "events", []string{
			"cronjob-controller CronJob SuccessfulCreate: Created job " + name, "cronjob-controller CronJob MissingJob: Active job went missing: " + name,
		}, c.schedules())
	})
}
