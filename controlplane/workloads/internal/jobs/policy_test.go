// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/jobs"
	"github.com/steer-dev/steer/storage"
)

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// first is the first condition in the status that the requests write, "" if they write none.
func first(t *testing.T, requests []step.Request) string {
	t.Helper()
	for _, r := range requests {
		if r.Method+" "+r.Path != status {
			continue
		}
		if c := clustertest.Body[batchv1.Job](t, r).Status.Conditions; len(c) > 0 {
			return fmt.Sprint(c[0].Type, " ", c[0].Reason, ": ", c[0].Message)
		}
	}
	return ""
}

func TestJobJudgesFailedPodsByItsPolicy(t *testing.T) {
	t.Parallel()
	const exited = "{phase: Failed, containerStatuses: [{name: side, state: {terminated: {exitCode: 0}}}, {name: c, state: {terminated: {exitCode: 42}}}]}"
	rule := func(action, on string) string {
		return "podFailurePolicy: {rules: [{action: " + action + ", " + on + "}]}, "
	}
	for what, tt := range map[string]struct{ policy, status, want string }{
		"a code":                      {rule("FailJob", "onExitCodes: {operator: In, values: [1, 42]}"), exited, "FailureTarget PodFailurePolicy: Container c for pod default/a failed with exit code 42 matching FailJob rule at index 0"},
		"another code":                {rule("FailJob", "onExitCodes: {operator: In, values: [1]}"), exited, ""},
		"a code that is not excepted": {rule("FailJob", "onExitCodes: {operator: NotIn, values: [1]}"), exited, "FailureTarget PodFailurePolicy: Container c for pod default/a failed with exit code 42 matching FailJob rule at index 0"},
		"an excepted code":            {rule("FailJob", "onExitCodes: {operator: NotIn, values: [42]}"), exited, ""},
		"another container":           {rule("FailJob", "onExitCodes: {containerName: side, operator: In, values: [42]}"), exited, ""},
		"an init container": {
			rule("FailJob", "onExitCodes: {operator: In, values: [42]}"), "{phase: Failed, initContainerStatuses: [{name: init, state: {terminated: {exitCode: 42}}}]}",
			"FailureTarget PodFailurePolicy: Container init for pod default/a failed with exit code 42 matching FailJob rule at index 0",
		},
		"a condition": {
			rule("FailJob", "onPodConditions: [{type: Other, status: 'True'}, {type: DisruptionTarget, status: 'True'}]"), "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True'}]}",
			"FailureTarget PodFailurePolicy: Pod default/a has condition DisruptionTarget matching FailJob rule at index 0",
		},
		"a condition of another status": {rule("FailJob", "onPodConditions: [{type: DisruptionTarget, status: 'False'}]"), "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True'}]}", ""},
		"the first rule that matches": {
			"podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [42]}}, {action: FailJob, onExitCodes: {operator: In, values: [42]}}]}, ", exited, "",
		},
		"a Pod that runs": {rule("FailJob", "onExitCodes: {operator: In, values: [42]}"), strings.Replace(exited, "Failed", "Running", 1), ""},
		"no policy":       {"", exited, ""},
	} {
		w := clustertest.New()
		look := started(t, w, tt.policy)
		pod(t, w, "a", tt.status)
		same(t, what, tt.want, first(t, look()))
	}
}

func TestJobIgnoresFailuresByItsPolicy(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"Ignore": "", "Count": "FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit"} {
		w := clustertest.New()
		look := started(t, w, "podFailurePolicy: {rules: [{action: "+action+", onExitCodes: {operator: In, values: [42]}}]}, ")
		for _, name := range []string{"a", "b"} {
			pod(t, w, name, "{phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 42}}}]}")
		}
		same(t, action, want, first(t, look()))
	}
}

// indexed is a Job of indexes that the controller has seen before.
func indexed(t *testing.T, w *clustertest.World, spec, status string) func() []step.Request {
	t.Helper()
	key := w.Put(t, cluster.Jobs, "work", "spec: {parallelism: 3, completions: 3, backoffLimit: 99, completionMode: Indexed, "+spec+template+
		"}\nstatus: {startTime: '2025-12-31T23:59:30Z', "+status+"}")
	return func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { jobs.Job(turn, key) }) }
}

// indexPod is a Pod of an index, with the number of failures before it.
func indexPod(t *testing.T, w *clustertest.World, name string, index, failures int, status string) {
	t.Helper()
	w.Put(t, cluster.Pods, name, fmt.Sprintf(`
metadata:
  labels: {batch.kubernetes.io/controller-uid: work}
  annotations: {batch.kubernetes.io/job-completion-index: "%d", batch.kubernetes.io/job-index-failure-count: "%d"}
  finalizers: [batch.kubernetes.io/job-tracking]
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: work, uid: work, controller: true}]
spec: {nodeName: node1}
status: `, index, failures)+status)
}

func TestJobFailsByItsIndexes(t *testing.T) {
	t.Parallel()
	const failed, succeeded = "{phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 42}}}]}", "{phase: Succeeded}"
	for what, tt := range map[string]struct {
		spec, status string
		pods         map[int]string
		failures     int
		want         string
	}{
		"below the limit of an index": {spec: "backoffLimitPerIndex: 1, ", pods: map[int]string{0: failed, 1: failed, 2: failed}},
		"all indexes":                 {spec: "backoffLimitPerIndex: 1, ", pods: map[int]string{0: failed, 1: failed, 2: failed}, failures: 1, want: "FailureTarget FailedIndexes: Job has failed indexes"},
		"the last index":              {spec: "backoffLimitPerIndex: 0, ", pods: map[int]string{0: failed, 1: succeeded, 2: succeeded}, want: "FailureTarget FailedIndexes: Job has failed indexes"},
		"an index before others end":  {spec: "backoffLimitPerIndex: 0, ", pods: map[int]string{0: failed, 1: succeeded}},
		"more than allowed":           {spec: "backoffLimitPerIndex: 0, maxFailedIndexes: 1, ", pods: map[int]string{0: failed, 1: failed}, want: "FailureTarget MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"},
		"as many as allowed":          {spec: "backoffLimitPerIndex: 0, maxFailedIndexes: 1, ", pods: map[int]string{0: failed}},
		"with those of before":        {spec: "backoffLimitPerIndex: 0, maxFailedIndexes: 1, ", status: "failedIndexes: '2'", pods: map[int]string{0: failed}, want: "FailureTarget MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"},
		"by the policy":               {spec: "backoffLimitPerIndex: 5, podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [42]}}]}, maxFailedIndexes: 0, ", pods: map[int]string{0: failed}, want: "FailureTarget MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes"},
		"ignored by the policy":       {spec: "backoffLimitPerIndex: 0, podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [42]}}]}, maxFailedIndexes: 0, ", pods: map[int]string{0: failed}},
	} {
		w := clustertest.New()
		look := indexed(t, w, tt.spec, tt.status)
		for index, status := range tt.pods {
			indexPod(t, w, fmt.Sprint("p", index), index, tt.failures, status)
		}
		same(t, what, tt.want, first(t, look()))
	}
}

func TestJobSucceedsByItsPolicy(t *testing.T) {
	t.Parallel()
	for rules, want := range map[string]string{
		"[{succeededIndexes: '0'}]":                      "",
		"[{succeededIndexes: '1-2'}]":                    "SuccessCriteriaMet SuccessPolicy: Matched rules at index 0",
		"[{succeededIndexes: '0-2', succeededCount: 2}]": "SuccessCriteriaMet SuccessPolicy: Matched rules at index 0",
		"[{succeededIndexes: '0,2', succeededCount: 2}]": "",
		"[{succeededCount: 3}, {succeededCount: 2}]":     "SuccessCriteriaMet SuccessPolicy: Matched rules at index 1",
	} {
		w := clustertest.New()
		look := indexed(t, w, "successPolicy: {rules: "+rules+"}, ", "")
		indexPod(t, w, "p1", 1, 0, "{phase: Succeeded}")
		indexPod(t, w, "p2", 2, 0, "{phase: Succeeded}")
		same(t, rules, want, first(t, look()))
	}
}

func TestJobCountsTheFailuresOfAnIndex(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		policy   string
		failures int
		ended    time.Duration
		want     string
		wait     time.Duration
	}{
		"the first":                {ended: 10 * time.Second, want: "0 map[batch.kubernetes.io/job-completion-index:0 batch.kubernetes.io/job-index-failure-count:1]"},
		"the third":                {failures: 2, ended: 40 * time.Second, want: "0 map[batch.kubernetes.io/job-completion-index:0 batch.kubernetes.io/job-index-failure-count:3]"},
		"the third, too soon":      {failures: 2, ended: 39 * time.Second, wait: time.Second},
		"one that is ignored once": {policy: "podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [42]}}]}, ", failures: 1, ended: 40 * time.Second, want: "0 map[batch.kubernetes.io/job-completion-index:0 batch.kubernetes.io/job-index-failure-count:1 batch.kubernetes.io/job-index-ignored-failure-count:1]"},
	} {
		w := clustertest.New()
		look := indexed(t, w, "backoffLimitPerIndex: 9, "+tt.policy, "")
		at := w.Now.Add(-tt.ended).Format(time.RFC3339)
		indexPod(t, w, "p0", 0, tt.failures, "{phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 42, finishedAt: '"+at+"'}}}]}")
		got := ""
		for _, r := range look() {
			if r.Method != "POST" || !strings.HasSuffix(r.Path, "/pods") {
				continue
			}
			if p := clustertest.Body[corev1.Pod](t, r); p.Annotations["batch.kubernetes.io/job-completion-index"] == "0" {
				got = "0 " + fmt.Sprint(p.Annotations)
			}
		}
		same(t, what, tt.want, got)
		wait := time.Duration(0)
		for _, timer := range w.Memory.Timers {
			wait = timer.Sub(w.Now)
		}
		same(t, "the wait for "+what, tt.wait, wait)
	}
}

// withNamespace stores the namespace that Events are recorded in.
func withNamespace(t *testing.T, w *clustertest.World) {
	t.Helper()
	steptest.Put(t, w.Store, storage.Key{Bucket: cluster.Namespaces, Name: "default"}, map[string]any{"metadata": map[string]any{"uid": "u"}})
}

// reasons returns those of the Events that wait.
func reasons(t *testing.T, w *clustertest.World) []string {
	t.Helper()
	var out []string
	for _, r := range w.Step(t, func(turn *cluster.Turn) { turn.Record() }) {
		out = append(out, clustertest.Body[corev1.Event](t, r).Reason)
	}
	return out
}

// cronJobs returns a look at a CronJob, which carries its requests out and renders them.
func cronJobs(t *testing.T, w *clustertest.World, spec, status string) func() string {
	t.Helper()
	withNamespace(t, w)
	key := w.Put(t, cluster.CronJobs, "backup", "spec: {jobTemplate: {spec: {"+template+"}}, "+spec+"}\nstatus: {"+status+"}")
	return func() string {
		var out []string
		for _, r := range w.Step(t, func(turn *cluster.Turn) { jobs.CronJob(turn, key) }) {
			out = append(out, r.Method+" "+r.Path[strings.LastIndex(r.Path, "default/")+len("default/"):])
			w.Memory.Reported(r, "", true, w.Now)
		}
		return strings.Join(out, "\n")
	}
}

func TestCronJobEndsOldJobs(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"successfulJobsHistoryLimit: 1":                            "DELETE jobs/done-1",
		"successfulJobsHistoryLimit: 0":                            "DELETE jobs/done-1\nDELETE jobs/done-2",
		"successfulJobsHistoryLimit: 2":                            "",
		"failedJobsHistoryLimit: 0":                                "DELETE jobs/failed-1",
		"failedJobsHistoryLimit: 0, successfulJobsHistoryLimit: 0": "DELETE jobs/done-1\nDELETE jobs/done-2\nDELETE jobs/failed-1",
	} {
		w := clustertest.New()
		look := cronJobs(t, w, "suspend: true, schedule: '* * * * *', "+spec, "lastSuccessfulTime: '2026-01-01T00:00:00Z'")
		now := w.Now
		for i, name := range []string{"done-1", "done-2", "failed-1"} {
			w.Now = now.Add(time.Duration(i) * time.Second)
			how := map[bool]string{true: "Failed", false: "Complete"}[strings.HasPrefix(name, "failed")]
			w.Put(t, cluster.Jobs, name, "metadata: {ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: backup, uid: backup, controller: true}]}\n"+
				"status: {conditions: [{type: "+how+", status: 'True', lastTransitionTime: '2025-12-31T00:00:00Z'}], completionTime: '2025-12-31T00:00:00Z'}")
		}
		w.Now = now
		same(t, spec, want, look())
	}
}

func TestCronJobStartsWhatItsScheduleSays(t *testing.T) {
	t.Parallel()
	const start = "POST jobs"
	for what, tt := range map[string]struct{ spec, status, want string }{
		"due":                        {"schedule: '* * * * *'", "lastScheduleTime: '2025-12-31T23:59:00Z'", start},
		"not due":                    {"schedule: '* * * * *'", "lastScheduleTime: '2026-01-01T00:00:00Z'", ""},
		"suspended":                  {"suspend: true, schedule: '* * * * *'", "lastScheduleTime: '2025-12-31T23:59:00Z'", ""},
		"a zone":                     {"schedule: '0 19 * * *', timeZone: America/New_York", "lastScheduleTime: '2025-12-31T23:59:00Z'", start},
		"no zone":                    {"schedule: '0 19 * * *'", "lastScheduleTime: '2025-12-31T23:59:00Z'", ""},
		"a zone that is not known":   {"schedule: '* * * * *', timeZone: Nowhere/City", "lastScheduleTime: '2025-12-31T23:59:00Z'", ""},
		"a schedule that is none":    {"schedule: 'whenever'", "lastScheduleTime: '2025-12-31T23:59:00Z'", ""},
		"too late":                   {"schedule: '30 23 * * *', startingDeadlineSeconds: 1799", "lastScheduleTime: '2025-12-31T23:00:00Z'", ""},
		"late, but not too late":     {"schedule: '30 23 * * *', startingDeadlineSeconds: 1801", "lastScheduleTime: '2025-12-31T23:00:00Z'", start},
		"never started, due at once": {"schedule: '* * * * *'", "", start},
		"many times missed":          {"schedule: '* * * * *'", "lastScheduleTime: '2025-12-30T00:00:00Z'", start},
	} {
		w := clustertest.New()
		same(t, what, tt.want, cronJobs(t, w, tt.spec, tt.status)())
		same(t, "missed too often: "+what, what == "many times missed", slices.Contains(reasons(t, w), "TooManyMissedTimes"))
	}
}

func TestCronJobFollowsItsActiveJobs(t *testing.T) {
	t.Parallel()
	const owned = "metadata: {annotations: {batch.kubernetes.io/cronjob-scheduled-timestamp: x}, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: backup, uid: backup, controller: true}]}\n"
	w := clustertest.New()
	withNamespace(t, w)
	key := w.Put(t, cluster.CronJobs, "backup", "spec: {suspend: true, schedule: '* * * * *'}\nstatus: {active: [{name: runs, uid: runs}, {name: gone, uid: gone}, {name: done, uid: done}]}")
	w.Put(t, cluster.Jobs, "runs", owned)
	w.Put(t, cluster.Jobs, "new", owned)
	w.Put(t, cluster.Jobs, "done", owned+"status: {completionTime: '2026-01-01T00:00:00Z', conditions: [{type: Complete, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]}")
	requests := w.Step(t, func(turn *cluster.Turn) { jobs.CronJob(turn, key) })
	same(t, "requests", "PUT /apis/batch/v1/namespaces/default/cronjobs/backup/status", clustertest.Lines(requests))
	s := clustertest.Body[batchv1.CronJob](t, requests[0]).Status
	var active []string
	for _, r := range s.Active {
		active = append(active, r.Name)
	}
	same(t, "active", []string{"runs", "new"}, active)
	same(t, "the last success", w.Now, s.LastSuccessfulTime.UTC())
	w.Memory.Reported(requests[0], "", true, w.Now)
	var told []string
	for _, r := range w.Step(t, func(turn *cluster.Turn) { turn.Record() }) {
		e := clustertest.Body[corev1.Event](t, r)
		told = append(told, e.Reason+": "+e.Message)
	}
	slices.Sort(told)
	same(t, "Events", []string{"MissingJob: Active job went missing: gone", "SawCompletedJob: Saw completed job: done, condition: Complete"}, told)
}

func TestCronJobReplacesConcurrentJobs(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	look := cronJobs(t, w, "schedule: '* * * * *', concurrencyPolicy: Replace", "lastScheduleTime: '2025-12-31T23:59:00Z'")
	w.Put(t, cluster.Jobs, "runs", "metadata: {ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: backup, uid: backup, controller: true}]}")
	same(t, "requests", "DELETE jobs/runs\nPOST jobs", look())
	w.Put(t, cluster.Jobs, fmt.Sprint("backup-", w.Now.Unix()/60), "{}")
	same(t, "requests once the Job is there", "PUT cronjobs/backup/status", look())
}

func TestJobIsDeletedOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[int]string{59: "DELETE /apis/batch/v1/namespaces/default/jobs/work", 60: "DELETE /apis/batch/v1/namespaces/default/jobs/work", 61: ""} {
		w := clustertest.New()
		key := w.Put(t, cluster.Jobs, "work", fmt.Sprintf("spec: {ttlSecondsAfterFinished: %d, parallelism: 1, completions: 1, backoffLimit: 1, completionMode: NonIndexed, %s}\n"+
			"status: {startTime: '2025-12-31T23:58:00Z', conditions: [{type: Complete, status: 'True', lastTransitionTime: '2025-12-31T23:59:00Z'}]}", ttl, template))
		same(t, fmt.Sprint(ttl), want, clustertest.Lines(w.Step(t, func(turn *cluster.Turn) { jobs.Job(turn, key) })))
		wait := time.Duration(0)
		if want == "" {
			wait = time.Second
		}
		got := time.Duration(0)
		if at, ok := w.Memory.Timers[key]; ok {
			got = at.Sub(w.Now)
		}
		same(t, fmt.Sprint("the wait of ", ttl), wait, got)
	}
}
