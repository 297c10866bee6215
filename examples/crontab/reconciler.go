// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
)

const (
	// ownerLabel finds the Jobs of a CronTab.
	ownerLabel = "stable.example.com/crontab"
	// dueAnnotation is the due time of a Job, in RFC 3339. What has run is read
	// from the Jobs, so that a CronTab without a status works as well.
	dueAnnotation = "stable.example.com/due"
	// history is how many finished Jobs are kept.
	history = 3
)

// Reconciler starts the Jobs of CronTabs.
type Reconciler struct {
	// Ahead is how far its time is ahead of the clock, for demonstrations that do
	// not wait for the next due time; nil means not at all.
	Ahead func() time.Duration

	client client.Client
	jobs   controller.Children[*batchv1.Job]
}

// +kubebuilder:rbac:groups=stable.example.com,resources=crontabs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=stable.example.com,resources=crontabs/status,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile starts the Job that is due, keeps the running ones at the wished
// number of replicas, forgets the oldest finished ones, and comes back when the
// next one is due.
func (r *Reconciler) Reconcile(ctx context.Context, ct *v1.CronTab) (controller.Result, error) {
	schedule, err := parse(ct.Spec.CronSpec)
	if err != nil {
		controller.SetStalled(ct, &ct.Status.Conditions, "InvalidSchedule", err.Error())
		return controller.Result{}, controller.Terminal(err)
	}
	runs, err := r.runs(ctx, ct)
	if err != nil {
		return controller.Result{}, err
	}
	now := time.Now()
	if r.Ahead != nil {
		now = now.Add(r.Ahead())
	}
	since := ct.CreationTimestamp.Time
	if len(runs) > 0 {
		since = runs[0].due
	}
	if due := schedule.last(since, now); !due.IsZero() {
		runs = slices.Insert(runs, 0, run{name: runName(ct, due), due: due, image: ct.Spec.Image})
	}
	runs = prune(runs)
	if err := r.jobs.Apply(ctx, ct, desired(ct, runs)); err != nil {
		return controller.Result{}, err
	}

	ct.Status.Active = nil
	for _, run := range runs {
		if !run.finished {
			ct.Status.Active = append(ct.Status.Active, run.name)
		}
	}
	if len(runs) > 0 {
		ct.Status.LastScheduleTime = &metav1.Time{Time: runs[0].due}
	}
	next := schedule.Next(now.UTC())
	if next.IsZero() {
		controller.SetReady(ct, &ct.Status.Conditions, "NeverDue", "the schedule has no further due time")
		return controller.Done(), nil
	}
	controller.SetReady(ct, &ct.Status.Conditions, "Scheduled", "next due "+next.Format(time.RFC3339))
	return controller.After(next.Sub(now)), nil
}

// Cleanup suspends what still runs, so that no Pod outlives its CronTab; the
// Jobs themselves are collected with it.
func (r *Reconciler) Cleanup(ctx context.Context, ct *v1.CronTab) (controller.FinalizerResult, error) {
	runs, err := r.runs(ctx, ct)
	if err != nil {
		return controller.FinalizerResult{}, err
	}
	for _, run := range runs {
		if run.finished {
			continue
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ct.Namespace, Name: run.name}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))
		if err := client.IgnoreNotFound(r.client.Patch(ctx, job, patch)); err != nil {
			return controller.FinalizerResult{}, fmt.Errorf("suspend job %s: %w", run.name, err)
		}
	}
	return controller.Finalized(), nil
}

// run is one Job, as far as the operator cares.
type run struct {
	name        string
	due         time.Time
	image       string
	parallelism *int32 // what a finished one had
	finished    bool
}

// runs returns the Jobs of a CronTab, newest first.
func (r *Reconciler) runs(ctx context.Context, ct *v1.CronTab) ([]run, error) {
	var jobs batchv1.JobList
	err := r.client.List(ctx, &jobs, client.InNamespace(ct.Namespace), client.MatchingLabels{ownerLabel: ct.Name})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	var out []run
	for i := range jobs.Items {
		job := &jobs.Items[i]
		due, err := time.Parse(time.RFC3339, job.Annotations[dueAnnotation])
		if err != nil || !metav1.IsControlledBy(job, ct) || len(job.Spec.Template.Spec.Containers) == 0 {
			continue // not one of ours
		}
		out = append(out, run{
			name: job.Name, due: due, image: job.Spec.Template.Spec.Containers[0].Image,
			parallelism: job.Spec.Parallelism, finished: finished(job),
		})
	}
	slices.SortFunc(out, func(a, b run) int { return b.due.Compare(a.due) })
	return out, nil
}

func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// prune drops the oldest finished runs beyond the history.
func prune(runs []run) []run {
	kept := 0
	return slices.DeleteFunc(runs, func(r run) bool {
		if r.finished {
			kept++
		}
		return r.finished && kept > history
	})
}

// runName is the same whenever a run is started twice.
func runName(ct *v1.CronTab, due time.Time) string {
	return ct.Name + "-" + strconv.FormatInt(due.Unix()/60, 10)
}

// desired are the Jobs that there are to be.
func desired(ct *v1.CronTab, runs []run) []*batchv1.Job {
	one := int32(1)
	var out []*batchv1.Job
	for _, run := range runs {
		parallelism := cmp.Or(ct.Spec.Replicas, &one)
		if run.finished {
			parallelism = run.parallelism
		}
		labels := map[string]string{ownerLabel: ct.Name}
		out = append(out, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   ct.Namespace,
				Name:        run.name,
				Labels:      labels,
				Annotations: map[string]string{dueAnnotation: run.due.UTC().Format(time.RFC3339)},
			},
			Spec: batchv1.JobSpec{
				Parallelism: parallelism,
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers:    []corev1.Container{{Name: "cron", Image: run.image}},
					},
				},
			},
		})
	}
	return out
}
