// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/steertest"
)

const (
	generated = "config/crd/bases"
	bare      = "testdata/bare-crd.yaml"
	minutely  = "* * * * *"
	sample    = "config/samples/crontab.yaml"
	object    = "my-new-cron-object"
)

// bundle is a control plane and the operator.
type bundle struct{ *steertest.Env }

// timed runs a test in virtual time: hours of schedules go by as soon as no goroutine
// has anything to do. On a server of steertest.KubeconfigVariable time is real,
// and a test waits for up to a minute until a CronTab is due.
func timed(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	if os.Getenv(steertest.KubeconfigVariable) != "" {
		test(t)
		return
	}
	synctest.Test(t, test)
}

// setup runs the operator under the role that was generated for it, with what a
// test wants to be different, and the sample, due every minute.
func setup(t *testing.T, o steertest.Options) (*bundle, *v1.CronTab) {
	t.Helper()
	b := operate(t, o)
	b.Apply(sample)
	steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	b.patch(`{"spec":{"cronSpec":"` + minutely + `"}}`)
	return b, steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
}

func operate(t *testing.T, o steertest.Options) *bundle {
	t.Helper()
	o.Operator, o.Timeout = crontab.Operator(), 2*time.Minute
	if o.CRDs == nil {
		o.CRDs = []string{generated}
	}
	return &bundle{steertest.New(t, o)}
}

func (b *bundle) patch(body string) {
	b.Helper()
	ct := &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: object}}
	if err := b.Client.Patch(b.Context(), ct, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.Fatal(err)
	}
}

// untilDue waits until the sample is due, and returns that time.
func (b *bundle) untilDue() time.Time {
	b.Helper()
	due, err := crontab.NextDue(minutely, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(time.Until(due))
	return due
}

func (b *bundle) jobs(condition func([]batchv1.Job) bool) []batchv1.Job {
	b.Helper()
	list := steertest.WaitList(b.Env, func(l *batchv1.JobList) bool { return condition(l.Items) }, client.InNamespace(b.Namespace))
	return list.Items
}

// finish reports a Job as complete, like its controller would.
func (b *bundle) finish(job *batchv1.Job) {
	b.Helper()
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if err := b.Client.Status().Update(b.Context(), job); err != nil {
		b.Fatal(err)
	}
}

// active and scheduled are what a CronTab says of its Jobs.
func active(names ...string) steertest.Matcher {
	return steertest.Field(func(ct *v1.CronTab) []string { return ct.Status.Active }, names)
}

func scheduled(due time.Time) steertest.Matcher {
	return steertest.Field(func(ct *v1.CronTab) int64 { return ct.Status.LastScheduleTime.Unix() }, due.Unix())
}

func running(jobs []batchv1.Job) []batchv1.Job {
	var out []batchv1.Job
	for _, j := range jobs {
		if j.Status.CompletionTime == nil {
			out = append(out, j)
		}
	}
	return out
}

func TestACronTabStartsAJobAtEachDueTime(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, ct := setup(t, steertest.Options{})
		if len(ct.Finalizers) != 1 || ct.Status.LastScheduleTime != nil {
			t.Errorf("before the first due time: finalizers %v, status %+v", ct.Finalizers, ct.Status)
		}
		due := b.untilDue()
		job := b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 1 })[0]
		if image, n := job.Spec.Template.Spec.Containers[0].Image, job.Spec.Parallelism; image != "my-awesome-cron-image" || n == nil || *n != 1 {
			t.Errorf("image %s, parallelism %v", image, n)
		}
		if !metav1.IsControlledBy(&job, ct) {
			t.Errorf("the Job is not owned by the CronTab: %v", job.OwnerReferences)
		}
		steertest.Expect[*v1.CronTab](b.Env, object, active(job.Name), scheduled(due))
		b.finish(&job)
		steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, active())
	})
}

// TestADayOfSchedulesGoesByInVirtualTime lets a day pass, in which each Job ends.
// Nothing in the operator is there for this test.
func TestADayOfSchedulesGoesByInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		b.patch(`{"spec":{"cronSpec":"*/15 * * * *"}}`)
		b.Settled()
		began, started := time.Now(), map[string]bool{}
		for time.Since(began) < 24*time.Hour {
			time.Sleep(15 * time.Minute)
			job := running(b.jobs(func(jobs []batchv1.Job) bool { return len(running(jobs)) == 1 }))[0]
			started[job.Name] = true
			b.finish(&job)
		}
		b.Settled()
		if len(started) != 24*4 {
			t.Errorf("%d Jobs were started in a day, want %d", len(started), 24*4)
		}
		if kept := b.jobs(func([]batchv1.Job) bool { return true }); len(kept) != 3 {
			t.Errorf("%d Jobs are kept, want 3", len(kept))
		}
		steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, active(), scheduled(time.Now().Truncate(15*time.Minute)))
	})
}

func TestARestartInSteadyStateWritesNothing(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		b.untilDue()
		b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 1 })
		b.ExpectNoWrites()
	})
}

func TestRunningJobsFollowTheReplicas(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		b.untilDue()
		b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 1 })
		for _, replicas := range []int32{3, 0} {
			b.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
			b.jobs(func(jobs []batchv1.Job) bool {
				return jobs[0].Spec.Parallelism != nil && *jobs[0].Spec.Parallelism == replicas
			})
		}
	})
}

func TestOldJobsArePruned(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		for range 5 {
			b.untilDue()
			jobs := b.jobs(func(jobs []batchv1.Job) bool { return len(running(jobs)) == 1 })
			b.finish(&running(jobs)[0])
		}
		jobs := b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 3 && len(running(jobs)) == 0 })
		steertest.Expect[*v1.CronTab](b.Env, object, active())
		newest := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready).Status.LastScheduleTime.UTC().Format(time.RFC3339)
		if last := jobs[len(jobs)-1].Annotations["stable.example.com/due"]; last != newest {
			t.Errorf("the newest Job is of %s, want %s", last, newest)
		}
	})
}

func TestADeletedCronTabSuspendsAndTakesItsJobs(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, ct := setup(t, steertest.Options{})
		b.NeedControllers()
		b.untilDue()
		job := b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 1 })[0]
		// A finalizer holds the Job, so that what the finalizer did to it can be seen.
		hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`))
		if err := b.Client.Patch(b.Context(), &job, hold); err != nil {
			t.Fatal(err)
		}
		if err := b.Client.Delete(b.Context(), ct); err != nil {
			t.Fatal(err)
		}
		steertest.WaitGone[*v1.CronTab](b.Env, object)
		held := b.jobs(func(jobs []batchv1.Job) bool { return jobs[0].DeletionTimestamp != nil })[0]
		if held.Spec.Suspend == nil || !*held.Spec.Suspend {
			t.Error("the running Job was not suspended")
		}
		release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := b.Client.Patch(b.Context(), &held, release); err != nil {
			t.Fatal(err)
		}
		b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 0 })
	})
}

func TestAnInvalidScheduleIsReportedAndCanBeMended(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		b.patch(`{"spec":{"cronSpec":"soon"}}`)
		steertest.Expect[*v1.CronTab](b.Env, object, steertest.Condition(controller.StalledCondition, metav1.ConditionTrue, "InvalidSchedule"))
		b.patch(`{"spec":{"cronSpec":"0 * * * *"}}`)
		steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, steertest.Condition(controller.StalledCondition, ""))
	})
}

// TestJobsRunToTheirEnd lets the controllers of a cluster play their parts.
func TestJobsRunToTheirEnd(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{Workloads: steertest.Workloads()})
		for range 5 {
			due := b.untilDue()
			steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, scheduled(due), active())
		}
		b.Settled()
		if jobs := b.jobs(func([]batchv1.Job) bool { return true }); len(jobs) != 3 || len(running(jobs)) != 0 {
			t.Errorf("%d Jobs, %d of them running, want the last 3, ended", len(jobs), len(running(jobs)))
		}
	})
}

// TestAFailedWriteIsMadeUpFor breaks the second write of every kind.
func TestAFailedWriteIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]steertest.Failure{
		"error": steertest.InternalError, "conflict": steertest.Conflict, "lost answer": steertest.TimeoutAfterCommit,
	} {
		t.Run(name, func(t *testing.T) {
			timed(t, func(t *testing.T) {
				b, _ := setup(t, steertest.Options{Faults: []steertest.Fault{
					{Verb: client.VerbApply, Kind: "Job", With: failure, Skip: 1},
					{Verb: client.VerbPatch, Kind: "CronTab", SubResource: "status", With: failure, Skip: 1},
				}})
				for want := range 3 {
					b.untilDue()
					b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == want+1 })
				}
				b.Settled()
			})
		})
	}
}

// TestAnOperatorThatIsKilledAfterEveryWriteGetsThere starts it anew each time.
func TestAnOperatorThatIsKilledAfterEveryWriteGetsThere(t *testing.T) {
	timed(t, func(t *testing.T) {
		b := operate(t, steertest.Options{Workloads: steertest.Workloads()})
		killed := steertest.KillAfterEveryWrite[*v1.CronTab](b.Env, object, func() { b.Apply(sample) }, steertest.Ready)
		b.patch(`{"spec":{"cronSpec":"` + minutely + `"}}`)
		b.Settled()
		var due time.Time
		killed = append(killed, steertest.KillAfterEveryWrite[*v1.CronTab](b.Env, object, func() { due = b.untilDue() },
			steertest.Ready, func(obj client.Object) error { return scheduled(due)(obj) }, active())...)
		if len(killed) < 4 {
			t.Errorf("killed after %v only", killed)
		}
	})
}

// TestTheOperatorLeadsUnderItsRole fails where the generated role lacks what leader
// election needs.
func TestTheOperatorLeadsUnderItsRole(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{Args: []string{"--leader-elect"}})
		lease := client.NewMetadata(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		if err := b.Client.Get(b.Context(), client.ObjectKey{Namespace: b.Namespace, Name: crontab.Name}, lease); err != nil {
			t.Error(err)
		}
		b.StopOperator()
		b.StartOperator() // takes the lease over that was released
		b.Settled()
	})
}

func TestADueTimeThatWasMissedIsMadeUpFor(t *testing.T) {
	timed(t, func(t *testing.T) {
		b, _ := setup(t, steertest.Options{})
		b.StopOperator()
		due := b.untilDue()
		b.StartOperator()
		b.Settled()
		steertest.Expect[*v1.CronTab](b.Env, object, scheduled(due))
	})
}

// TestTheBareDefinitionOfTheDocumentationWorks runs the operator on the CRD as
// the Kubernetes documentation gives it: without a status.
func TestTheBareDefinitionOfTheDocumentationWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := operate(t, steertest.Options{CRDs: []string{bare}})
		b.Apply(sample)
		steertest.Wait(b.Env, object, func(ct *v1.CronTab) bool { return len(ct.Finalizers) == 1 })
		b.patch(`{"spec":{"cronSpec":"` + minutely + `"}}`)
		for want := range 3 {
			b.untilDue()
			b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == want+1 })
		}
		if err := b.Client.Delete(b.Context(), &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: object}}); err != nil {
			t.Fatal(err)
		}
		steertest.WaitGone[*v1.CronTab](b.Env, object)
		b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 0 })
	})
}
