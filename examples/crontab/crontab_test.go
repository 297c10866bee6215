// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"os"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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
	sample    = "config/samples/crontab.yaml"
	object    = "my-new-cron-object"
)

// bundle is a control plane, the operator, and its clock.
type bundle struct {
	*steertest.Env
	moved chan controller.Request

	mu    sync.Mutex
	ahead time.Duration
}

// setup runs the operator under the role that was generated for it, with what a
// test wants to be different.
func setup(t *testing.T, o steertest.Options) *bundle {
	t.Helper()
	b := &bundle{moved: make(chan controller.Request)}
	o.Operator = crontab.Operator(crontab.Clock{Now: b.now, Moved: b.moved})
	if o.CRDs == nil {
		o.CRDs = []string{generated}
	}
	b.Env = steertest.New(t, o)
	return b
}

func (b *bundle) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.ahead)
}

// skipToNext moves the clock to the next due time of a schedule, and tells nobody.
func (b *bundle) skipToNext(cronSpec string) time.Time {
	b.Helper()
	due, err := crontab.NextDue(cronSpec, b.now())
	if err != nil {
		b.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead = max(b.ahead, time.Until(due))
	return due
}

// moveToNext tells the operator as well.
func (b *bundle) moveToNext(cronSpec string) time.Time {
	b.Helper()
	due := b.skipToNext(cronSpec)
	select {
	case b.moved <- controller.Request{NamespacedName: client.ObjectKey{Namespace: b.Namespace, Name: object}}:
	case <-time.After(30 * time.Second):
		b.Fatal("the operator does not listen to its clock")
	}
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
	t.Parallel()
	b := setup(t, steertest.Options{})
	b.Apply(sample)
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	if len(ct.Finalizers) != 1 || ct.Status.LastScheduleTime != nil {
		t.Errorf("before the first due time: finalizers %v, status %+v", ct.Finalizers, ct.Status)
	}
	due := b.moveToNext(ct.Spec.CronSpec)
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
}

func TestRunningJobsFollowTheReplicas(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{})
	b.Apply(sample)
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	b.moveToNext(ct.Spec.CronSpec)
	b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 1 })
	for _, replicas := range []string{"3", "0"} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`))
		if err := b.Client.Patch(b.Context(), ct, patch); err != nil {
			t.Fatal(err)
		}
		b.jobs(func(jobs []batchv1.Job) bool {
			return jobs[0].Spec.Parallelism != nil && *jobs[0].Spec.Parallelism == *ct.Spec.Replicas
		})
	}
}

func TestOldJobsArePruned(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{})
	b.Apply(sample)
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	for range 5 {
		b.moveToNext(ct.Spec.CronSpec)
		jobs := b.jobs(func(jobs []batchv1.Job) bool { return len(running(jobs)) == 1 })
		b.finish(&running(jobs)[0])
	}
	jobs := b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 3 && len(running(jobs)) == 0 })
	steertest.Expect[*v1.CronTab](b.Env, object, active())
	newest := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready).Status.LastScheduleTime.UTC().Format(time.RFC3339)
	if last := jobs[len(jobs)-1].Annotations["stable.example.com/due"]; last != newest {
		t.Errorf("the newest Job is of %s, want %s", last, newest)
	}
}

func TestADeletedCronTabSuspendsAndTakesItsJobs(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{})
	b.Apply(sample)
	b.NeedControllers()
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	b.moveToNext(ct.Spec.CronSpec)
	job := b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 1 })[0]
	// Somebody holds the Job, so that what the finalizer did to it can be seen.
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
}

func TestAnInvalidScheduleIsReportedAndCanBeMended(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{})
	b.Apply(sample)
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cronSpec":"soon"}}`))
	if err := b.Client.Patch(b.Context(), ct, patch); err != nil {
		t.Fatal(err)
	}
	steertest.Expect[*v1.CronTab](b.Env, object, steertest.Condition(controller.StalledCondition, metav1.ConditionTrue, "InvalidSchedule"))
	patch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cronSpec":"0 * * * *"}}`))
	if err := b.Client.Patch(b.Context(), ct, patch); err != nil {
		t.Fatal(err)
	}
	steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, steertest.Condition(controller.StalledCondition, ""))
}

// TestJobsRunToTheirEnd lets the controllers of a cluster play their parts.
func TestJobsRunToTheirEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{Workloads: steertest.Workloads()})
	b.Apply(sample)
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	for range 5 {
		due := b.moveToNext(ct.Spec.CronSpec)
		steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready, scheduled(due), active())
	}
	b.Settled()
	if jobs := b.jobs(func([]batchv1.Job) bool { return true }); len(jobs) != 3 || len(running(jobs)) != 0 {
		t.Errorf("%d Jobs, %d of them running, want the last 3, ended", len(jobs), len(running(jobs)))
	}
}

// TestAFailedWriteIsMadeUpFor breaks the second write of every kind.
func TestAFailedWriteIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]steertest.Failure{
		"error": steertest.InternalError, "conflict": steertest.Conflict, "lost answer": steertest.TimeoutAfterCommit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, steertest.Options{Faults: []steertest.Fault{
				{Verb: client.VerbApply, Kind: "Job", With: failure, Skip: 1},
				{Verb: client.VerbPatch, Kind: "CronTab", SubResource: "status", With: failure, Skip: 1},
			}})
			b.Apply(sample)
			ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
			for want := range 3 {
				b.moveToNext(ct.Spec.CronSpec)
				b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == want+1 })
			}
			b.Settled()
		})
	}
}

// TestAnOperatorThatIsKilledAfterEveryWriteGetsThere starts it anew each time.
func TestAnOperatorThatIsKilledAfterEveryWriteGetsThere(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{Workloads: steertest.Workloads()})
	killed := steertest.KillAfterEveryWrite[*v1.CronTab](b.Env, object, func() { b.Apply(sample) }, steertest.Ready)
	due := b.skipToNext("* * * * *")
	killed = append(killed, steertest.KillAfterEveryWrite[*v1.CronTab](b.Env, object, func() {
		b.StopOperator() // it finds that time has passed when it starts
		b.StartOperator()
	}, steertest.Ready, scheduled(due), active())...)
	if len(killed) < 4 {
		t.Errorf("killed after %v only", killed)
	}
}

func TestADueTimeThatWasMissedIsMadeUpFor(t *testing.T) {
	t.Parallel()
	b := setup(t, steertest.Options{})
	b.Apply(sample)
	ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
	b.StopOperator()
	due := b.skipToNext(ct.Spec.CronSpec)
	b.StartOperator()
	b.Settled()
	steertest.Expect[*v1.CronTab](b.Env, object, scheduled(due))
}

// TestTheBareDefinitionOfTheDocumentationWorks runs the operator on the CRD as
// the Kubernetes documentation gives it: without a status.
func TestTheBareDefinitionOfTheDocumentationWorks(t *testing.T) {
	t.Parallel()
	if os.Getenv(steertest.KubeconfigVariable) != "" {
		t.Skip("the other tests need the whole definition on the same server")
	}
	b := setup(t, steertest.Options{CRDs: []string{bare}})
	b.Apply(sample)
	steertest.Wait(b.Env, object, func(ct *v1.CronTab) bool { return len(ct.Finalizers) == 1 })
	for want := range 3 {
		b.moveToNext("* * * * */5")
		b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == want+1 })
	}
	if err := b.Client.Delete(b.Context(), &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: object}}); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*v1.CronTab](b.Env, object)
	b.jobs(func(jobs []batchv1.Job) bool { return len(jobs) == 0 })
}
