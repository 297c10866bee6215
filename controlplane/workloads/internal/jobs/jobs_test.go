// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/jobs"
)

const (
	template = "selector: {matchLabels: {batch.kubernetes.io/controller-uid: work}}, template: {metadata: {labels: {batch.kubernetes.io/controller-uid: work}}, " +
		"spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"
	status = "PUT /apis/batch/v1/namespaces/default/jobs/work/status"
)

// started is a Job that the controller has seen before, with what its spec has besides.
func started(t *testing.T, w *clustertest.World, spec string) func() []step.Request {
	t.Helper()
	key := w.Put(t, cluster.Jobs, "work", "spec: {parallelism: 2, completions: 2, backoffLimit: 1, completionMode: NonIndexed, "+spec+template+
		"}\nstatus: {startTime: '2025-12-31T23:59:30Z'}")
	return func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { jobs.Job(turn, key) }) }
}

// pod is one of the Job, tracked by its finalizer.
func pod(t *testing.T, w *clustertest.World, name, status string) {
	t.Helper()
	w.Put(t, cluster.Pods, name, `
metadata:
  labels: {batch.kubernetes.io/controller-uid: work}
  finalizers: [batch.kubernetes.io/job-tracking]
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: work, uid: work, controller: true}]
spec: {nodeName: node1}
status: `+status)
}

// statusOf returns the status that the requests write.
func statusOf(t *testing.T, requests []step.Request) *batchv1.JobStatus {
	t.Helper()
	for _, r := range requests {
		if r.Method+" "+r.Path == status {
			return &clustertest.Body[batchv1.Job](t, r).Status
		}
	}
	t.Fatalf("the status is not written:\n%s", clustertest.Lines(requests))
	return nil
}

func TestJobCreatesTrackedPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	requests := started(t, w, "")()
	pods := 0
	for _, r := range requests {
		if r.Method == "POST" && r.Path == "/api/v1/namespaces/default/pods" {
			pods++
			if p := clustertest.Body[corev1.Pod](t, r); p.GenerateName != "work-" || fmt.Sprint(p.Finalizers) != "[batch.kubernetes.io/job-tracking]" {
				t.Errorf("the Pod is %+v", p.ObjectMeta)
			}
		}
	}
	if pods != 2 {
		t.Errorf("%d Pods, want 2:\n%s", pods, clustertest.Lines(requests))
	}
}

func TestJobGivesIndexesToItsPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.Jobs, "work", "spec: {parallelism: 2, completions: 3, backoffLimit: 1, completionMode: Indexed, "+template+"}\nstatus: {startTime: '2025-12-31T23:59:30Z'}")
	got := map[string]bool{}
	for _, r := range w.Step(t, func(turn *cluster.Turn) { jobs.Job(turn, key) }) {
		if r.Method == "POST" && r.Path == "/api/v1/namespaces/default/pods" {
			p := clustertest.Body[corev1.Pod](t, r)
			got[p.Annotations["batch.kubernetes.io/job-completion-index"]+" "+p.Spec.Hostname] = true
		}
	}
	if len(got) != 2 || !got["0 work-0"] || !got["1 work-1"] {
		t.Errorf("index and host name are %v", got)
	}
}

func TestJobCompletesWhenItsPodsHaveSucceeded(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	look := started(t, w, "")
	pod(t, w, "a", "{phase: Succeeded}")
	pod(t, w, "b", "{phase: Succeeded}")
	s := statusOf(t, look())
	if len(s.Conditions) == 0 || s.Conditions[0].Type != batchv1.JobSuccessCriteriaMet || s.Conditions[0].Reason != "CompletionsReached" {
		t.Errorf("the status is %+v", s)
	}
}

func TestJobFailsAboveItsBackoffLimit(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	look := started(t, w, "")
	pod(t, w, "a", "{phase: Failed}")
	pod(t, w, "b", "{phase: Failed}")
	s := statusOf(t, look())
	if len(s.Conditions) == 0 || s.Conditions[0].Type != batchv1.JobFailureTarget || s.Conditions[0].Reason != "BackoffLimitExceeded" {
		t.Errorf("the status is %+v", s)
	}
}

func TestJobFailsByItsPodFailurePolicy(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	look := started(t, w, "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}, ")
	pod(t, w, "a", "{phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 42}}}]}")
	s := statusOf(t, look())
	if len(s.Conditions) == 0 || s.Conditions[0].Type != batchv1.JobFailureTarget || s.Conditions[0].Reason != "PodFailurePolicy" {
		t.Errorf("the status is %+v", s)
	}
}

func TestJobFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	look := started(t, w, "activeDeadlineSeconds: 30, ")
	s := statusOf(t, look())
	if len(s.Conditions) == 0 || s.Conditions[0].Reason != "DeadlineExceeded" {
		t.Errorf("after 30 s the status is %+v", s)
	}
}

func TestJobDeletesItsPodsWhileSuspended(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	look := started(t, w, "suspend: true, ")
	pod(t, w, "a", "{phase: Running}")
	requests := look()
	if s := statusOf(t, requests); len(s.Conditions) == 0 || s.Conditions[0].Type != batchv1.JobSuspended || s.StartTime != nil {
		t.Errorf("the status is %+v", s)
	}
	deleted := false
	for _, r := range requests {
		deleted = deleted || r.Method+" "+r.Path == "DELETE /api/v1/namespaces/default/pods/a"
	}
	if !deleted {
		t.Errorf("the Pod stays:\n%s", clustertest.Lines(requests))
	}
}

func TestCronJobStartsTheJobThatIsDue(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.CronJobs, "backup", "spec: {schedule: '* * * * *', concurrencyPolicy: Allow, jobTemplate: {spec: {"+template+"}}}\n"+
		"status: {lastScheduleTime: '2025-12-31T23:59:00Z'}")
	look := func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { jobs.CronJob(turn, key) }) }
	requests := look()
	if len(requests) == 0 || requests[0].Method+" "+requests[0].Path != "POST /apis/batch/v1/namespaces/default/jobs" {
		t.Fatalf("requests:\n%s", clustertest.Lines(requests))
	}
	j := clustertest.Body[batchv1.Job](t, requests[0])
	if want := fmt.Sprintf("backup-%d", w.Now.Unix()/60); j.Name != want || j.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] != "2026-01-01T00:00:00Z" {
		t.Errorf("the Job is %+v, want the name %s", j.ObjectMeta, want)
	}
	w.Now = w.Now.Add(-time.Second)
	if requests := look(); len(requests) > 0 && requests[0].Method == "POST" {
		t.Errorf("a second before:\n%s", clustertest.Lines(requests))
	}
}

func TestCronJobForbidsConcurrentJobs(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.CronJobs, "backup", "spec: {schedule: '* * * * *', concurrencyPolicy: Forbid, jobTemplate: {spec: {"+template+"}}}\n"+
		"status: {lastScheduleTime: '2025-12-31T23:59:00Z', active: [{kind: Job, name: running, namespace: default, uid: running}]}")
	w.Put(t, cluster.Jobs, "running", "metadata: {ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: backup, uid: backup, controller: true}]}\nspec: {}\nstatus: {active: 1}")
	for _, r := range w.Step(t, func(turn *cluster.Turn) { jobs.CronJob(turn, key) }) {
		if r.Method == "POST" && r.Path == "/apis/batch/v1/namespaces/default/jobs" {
			t.Error("a Job is started while another runs")
		}
	}
}
