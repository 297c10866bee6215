// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/trace"
)

const (
	sampleName = "my-new-cron-object"
	// stepTimeout bounds every step; they take milliseconds.
	stepTimeout = 30 * time.Second
)

// sampleKey names the CronTab of the demo.
func sampleKey() client.ObjectKey {
	return client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: sampleName}
}

// install applies the CRD and the webhook configurations, and removes what an earlier demo left in the data
// folder: its clock was ahead of this one's.
func (d *demo) install(ctx context.Context) error {
	began := time.Now()
	for _, file := range []string{crontab.CRDFile, crontab.WebhookFile} {
		if err := d.apply(ctx, file); err != nil {
			return err
		}
	}
	d.out.line("CRD crontabs.stable.example.com installed and served in %s", time.Since(began).Round(100*time.Microsecond))
	return nil
}

// script runs the steps one after the other; each waits until the cluster shows
// what it is about.
func (d *demo) script(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.clean, d.firstCreate, d.deny, d.complete, d.runDue, d.finishRun, d.scale, d.prune, d.remove, d.createAgain,
	} {
		bounded, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("demo: the step did not converge within %s", stepTimeout))
		err := step(bounded)
		if err == nil {
			err = d.settle(bounded)
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// quiet is how long the operator must do nothing to count as settled.
const quiet = 25 * time.Millisecond

// settle waits until the operator has seen the newest CronTab and then rests, so
// that what is printed stands below the step it belongs to.
func (d *demo) settle(ctx context.Context) error {
	var ct v1.CronTab
	err := d.client.Get(ctx, sampleKey(), &ct)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	seen := false
	for {
		rest := time.NewTimer(quiet)
		select {
		case r := <-d.seen:
			seen = seen || slices.ContainsFunc(r.Reads, func(a trace.Access) bool {
				return a.Kind == "CronTab" && a.Revision == ct.ResourceVersion
			})
		case <-rest.C:
			if seen {
				return nil
			}
			// The record may have been read by an earlier wait: the state decides.
			var now v1.CronTab
			if err := d.client.Get(ctx, sampleKey(), &now); err != nil {
				return client.IgnoreNotFound(err)
			}
			seen, ct = now.ResourceVersion == ct.ResourceVersion, now
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		rest.Stop()
	}
}

func (d *demo) clean(ctx context.Context) error {
	ct := &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: sampleName}}
	if err := d.client.Delete(ctx, ct); err != nil {
		return client.IgnoreNotFound(err)
	}
	d.out.title("An earlier demo left a CronTab in the data folder: delete it")
	return d.gone(ctx)
}

func (d *demo) firstCreate(ctx context.Context) error {
	d.out.title("Apply the sample: a CronTab for every minute of Sunday and Friday")
	return d.create(ctx)
}

// deny and complete show the webhooks.
func (d *demo) deny(ctx context.Context) error {
	d.out.title("A schedule that is none is denied by a webhook of the operator, before it is stored")
	if err := d.patch(ctx, `{"spec":{"cronSpec":"soon"}}`); !apierrors.IsInvalid(err) {
		return fmt.Errorf("demo: a schedule that is none is not denied: %w", err)
	}
	return nil
}

func (d *demo) complete(ctx context.Context) error {
	d.out.title("A schedule by name is written as five fields by another")
	if err := d.patch(ctx, `{"spec":{"cronSpec":"@hourly"}}`); err != nil {
		return err
	}
	_, err := d.crontab(ctx, func(ct *v1.CronTab) bool { return ct.Spec.CronSpec == "0 * * * *" && await.Ready(ct) })
	return err
}

func (d *demo) create(ctx context.Context) error {
	if err := d.apply(ctx, crontab.SampleFile); err != nil {
		return err
	}
	_, err := await.Object(ctx, d.client, sampleKey(), await.Ready[*v1.CronTab])
	return err
}

func (d *demo) runDue(ctx context.Context) error {
	due, err := d.moveToNext(ctx)
	if err != nil {
		return err
	}
	_, err = d.crontab(ctx, func(ct *v1.CronTab) bool {
		return len(ct.Status.Active) == 1 && ct.Status.LastScheduleTime.Equal(&metav1.Time{Time: due})
	})
	return err
}

func (d *demo) finishRun(ctx context.Context) error {
	d.out.title("The Pod of the Job has done its work: the Job completes")
	if err := d.finishJobs(ctx); err != nil {
		return err
	}
	_, err := d.crontab(ctx, func(ct *v1.CronTab) bool { return len(ct.Status.Active) == 0 })
	return err
}

func (d *demo) scale(ctx context.Context) error {
	if _, err := d.moveToNext(ctx); err != nil {
		return err
	}
	if _, err := d.jobs(ctx, func(jobs []batchv1.Job) bool { return len(active(jobs)) == 1 }); err != nil {
		return err
	}
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.out.title("Scale it to 3 replicas while a Job runs")
	if err := d.patch(ctx, `{"spec":{"replicas":3}}`); err != nil {
		return err
	}
	_, err := d.jobs(ctx, func(jobs []batchv1.Job) bool {
		running := active(jobs)
		return len(running) == 1 && running[0].Spec.Parallelism != nil && *running[0].Spec.Parallelism == 3
	})
	return err
}

func (d *demo) prune(ctx context.Context) error {
	d.out.title("Four more runs: only the last three finished Jobs are kept")
	for range 4 {
		if err := d.finishJobs(ctx); err != nil {
			return err
		}
		if _, err := d.move(ctx); err != nil {
			return err
		}
		if _, err := d.jobs(ctx, func(jobs []batchv1.Job) bool { return len(active(jobs)) == 1 }); err != nil {
			return err
		}
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	_, err := d.jobs(ctx, func(jobs []batchv1.Job) bool { return len(jobs) == 4 })
	return err
}

func (d *demo) remove(ctx context.Context) error {
	d.out.title("Delete it: the finalizer suspends what runs, the garbage collector takes the Jobs and their Pods")
	ct := &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: sampleName}}
	if err := d.client.Delete(ctx, ct); err != nil {
		return err
	}
	return d.gone(ctx)
}

func (d *demo) createAgain(ctx context.Context) error {
	d.out.title("Everything converged. Once more the sample, to play with")
	return d.create(ctx)
}

// gone waits until the CronTab and its Jobs do not exist.
func (d *demo) gone(ctx context.Context) error {
	if _, err := await.Object(ctx, d.client, sampleKey(), await.Gone[*v1.CronTab]); err != nil {
		return err
	}
	d.out.line("the CronTab is gone")
	if _, err := d.jobs(ctx, func(jobs []batchv1.Job) bool { return len(jobs) == 0 }); err != nil {
		return err
	}
	_, err := await.List(ctx, d.client, func(l *corev1.PodList) bool { return len(l.Items) == 0 }, client.InNamespace(metav1.NamespaceDefault))
	if err != nil {
		return err
	}
	d.out.line("its Jobs are collected, and their Pods")
	return nil
}

// moveToNext moves the clock to the next due time, and says so.
func (d *demo) moveToNext(ctx context.Context) (time.Time, error) {
	now := d.clock.now()
	due, err := d.due(ctx)
	if err != nil {
		return due, err
	}
	d.out.title("Move the operator's clock %s ahead, to %s", due.Sub(now).Round(time.Second), due.Format("Monday 15:04 MST"))
	return d.move(ctx)
}

func (d *demo) move(ctx context.Context) (time.Time, error) {
	due, err := d.due(ctx)
	if err != nil {
		return due, err
	}
	return due, d.clock.moveTo(ctx, due, controller.Request{NamespacedName: sampleKey()})
}

func (d *demo) due(ctx context.Context) (time.Time, error) {
	var ct v1.CronTab
	if err := d.client.Get(ctx, sampleKey(), &ct); err != nil {
		return time.Time{}, err
	}
	return crontab.NextDue(ct.Spec.CronSpec, d.clock.now())
}

func (d *demo) crontab(ctx context.Context, condition func(*v1.CronTab) bool) (*v1.CronTab, error) {
	return await.Object(ctx, d.client, sampleKey(), func(ct *v1.CronTab) bool { return ct != nil && condition(ct) })
}

func (d *demo) jobs(ctx context.Context, condition func([]batchv1.Job) bool) (*batchv1.JobList, error) {
	return await.List(ctx, d.client, func(l *batchv1.JobList) bool { return condition(l.Items) }, client.InNamespace(metav1.NamespaceDefault))
}

func active(jobs []batchv1.Job) []batchv1.Job {
	var out []batchv1.Job
	for _, job := range jobs {
		if job.Status.CompletionTime == nil {
			out = append(out, job)
		}
	}
	return out
}

// finishJobs lets the Pods of the running Jobs succeed before their time, and
// waits until the Jobs have completed.
func (d *demo) finishJobs(ctx context.Context) error {
	jobs, err := d.jobs(ctx, func([]batchv1.Job) bool { return true })
	if err != nil {
		return err
	}
	for _, job := range active(jobs.Items) {
		want := int32(1)
		if job.Spec.Parallelism != nil {
			want = *job.Spec.Parallelism
		}
		pods, err := await.List(ctx, d.client, func(l *corev1.PodList) bool { return runningPods(l.Items) == want },
			client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			err := d.client.Status().Patch(ctx, &pods.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	_, err = d.jobs(ctx, func(jobs []batchv1.Job) bool { return len(active(jobs)) == 0 })
	return err
}

// runningPods counts those that run.
func runningPods(pods []corev1.Pod) int32 {
	n := int32(0)
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

func (d *demo) patch(ctx context.Context, body string) error {
	ct := &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: sampleName}}
	return d.client.Patch(ctx, ct, client.RawPatch(types.MergePatchType, []byte(body)))
}

// apply applies one of the example's files.
func (d *demo) apply(ctx context.Context, file string) error {
	data, err := crontab.Config.ReadFile(file)
	if err != nil {
		return err
	}
	objects, err := manifest.Parse(file, data)
	if err != nil {
		return err
	}
	return manifest.Apply(ctx, d.client, "", objects)
}
