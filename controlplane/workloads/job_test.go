// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

func job(name string, with ...func(*batchv1.JobSpec)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	j.Spec.Template = template(name)
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, change := range with {
		change(&j.Spec)
	}
	return j
}

// TestJobsFollowTheirPolicies compares Jobs with what kube-controller-manager makes
// of them (oracle/cmd/controllers).
func TestJobsFollowTheirPolicies(t *testing.T) {
	t.Parallel()
	indexed := func(n int32) func(*batchv1.JobSpec) {
		return func(s *batchv1.JobSpec) {
			s.CompletionMode, s.Completions, s.Parallelism = new(batchv1.IndexedCompletion), &n, &n
		}
	}
	onExit := func(action batchv1.PodFailurePolicyAction, codes ...int32) func(*batchv1.JobSpec) {
		return func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes},
			}}}
		}
	}
	running := workloads.Outcome{Fate: workloads.Ready}
	for name, test := range map[string]struct {
		with     []func(*batchv1.JobSpec)
		outcomes []workloads.Outcome
		want     string // the last condition, counts and indexes
	}{
		"a failure that fails the Job": {
			[]func(*batchv1.JobSpec){indexed(2), onExit(batchv1.PodFailurePolicyActionFailJob, 42)},
			[]workloads.Outcome{{Selector: "batch.kubernetes.io/job-completion-index=0", Fate: workloads.Fail, ExitCode: 42}, running},
			"Failed PodFailurePolicy: Container main for pod default/x-0-* failed with exit code 42 matching FailJob rule at index 0; failed 2",
		},
		"enough indexes": {
			[]func(*batchv1.JobSpec){indexed(3), func(s *batchv1.JobSpec) {
				s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0"), SucceededCount: new(int32(1))}}}
			}},
			[]workloads.Outcome{{Selector: "batch.kubernetes.io/job-completion-index=0", Fate: workloads.Complete}, running},
			"Complete SuccessPolicy: Matched rules at index 0; succeeded 1, done 0",
		},
		"a limit for each index": {
			[]func(*batchv1.JobSpec){indexed(3), func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex = new(int32(0)) }},
			[]workloads.Outcome{{Selector: "batch.kubernetes.io/job-completion-index=1", Fate: workloads.Fail}},
			"Failed FailedIndexes: Job has failed indexes; failed 1, succeeded 2, done 0,2, failed indexes 1",
		},
		"a second try for each index": {
			[]func(*batchv1.JobSpec){indexed(2), func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex = new(int32(1)) }},
			[]workloads.Outcome{{Selector: "batch.kubernetes.io/job-completion-index=1", Fate: workloads.Fail}},
			"Failed FailedIndexes: Job has failed indexes; failed 2, succeeded 1, done 0, failed indexes 1",
		},
		"too many indexes": {
			[]func(*batchv1.JobSpec){indexed(3), onExit(batchv1.PodFailurePolicyActionFailIndex, 42), func(s *batchv1.JobSpec) {
				s.BackoffLimitPerIndex, s.MaxFailedIndexes = new(int32(2)), new(int32(0))
			}},
			[]workloads.Outcome{{Selector: "batch.kubernetes.io/job-completion-index=1", Fate: workloads.Fail, ExitCode: 42}, running},
			"Failed MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes; failed 3, failed indexes 1",
		},
		"a failure that is ignored": {
			[]func(*batchv1.JobSpec){onExit(batchv1.PodFailurePolicyActionIgnore, 3), func(s *batchv1.JobSpec) {
				s.BackoffLimit, s.ActiveDeadlineSeconds = new(int32(0)), new(int64(60))
			}},
			[]workloads.Outcome{{Fate: workloads.Fail, ExitCode: 3}},
			"Failed DeadlineExceeded: Job was active longer than specified deadline",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, test.outcomes...)
				c.Create(job("x", test.with...))
				for range 20 {
					c.settle()
					time.Sleep(5 * time.Second)
				}
				var j batchv1.Job
				c.get("x", &j)
				last := j.Status.Conditions[len(j.Status.Conditions)-1]
				got := fmt.Sprintf("%s %s: %s", last.Type, last.Reason, last.Message)
				sep := "; "
				add := func(what string, value any) {
					if text := fmt.Sprint(value); text != "" && text != "0" || what == "done" && text != "" {
						got += sep + what + " " + text
						sep = ", "
					}
				}
				add("failed", j.Status.Failed)
				add("succeeded", j.Status.Succeeded)
				add("done", j.Status.CompletedIndexes)
				if j.Status.FailedIndexes != nil {
					add("failed indexes", *j.Status.FailedIndexes)
				}
				equal(t, "Job", test.want, random.ReplaceAllString(got, "-*"))
				equal(t, "what is left", [2]int32{}, [2]int32{j.Status.Active, *j.Status.Terminating})
			})
		})
	}
}

func TestJobsIgnoreEvictedPodsByTheirFailurePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Fate: workloads.Ready})
		c.Create(job("x", func(s *batchv1.JobSpec) {
			s.BackoffLimit = new(int32(0))
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}}
		}))
		c.settle()
		var before, after corev1.PodList
		c.list(&before)
		p := &before.Items[0]
		if err := c.Client.SubResource("eviction").Create(c.Context(), p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			c.settle()
			time.Sleep(5 * time.Second)
		}
		c.list(&after)
		running := 0
		for i := range after.Items {
			if after.Items[i].Status.Phase == corev1.PodRunning && after.Items[i].UID != p.UID {
				running++
			}
		}
		equal(t, "Pods that run instead", 1, running)
		var j batchv1.Job
		c.get("x", &j)
		equal(t, "failed", int32(0), j.Status.Failed)
		equal(t, "conditions", 0, len(j.Status.Conditions))
	})
}

// jobLine is the state of the Job x in one line.
func (c *cluster) jobLine() string {
	c.Helper()
	var j batchv1.Job
	c.get("x", &j)
	var is []string
	for _, condition := range j.Status.Conditions {
		text := string(condition.Type)
		if condition.Status != corev1.ConditionTrue {
			text = "not " + text
		}
		if condition.Type == batchv1.JobFailed {
			text += " (" + condition.Reason + ")"
		}
		is = append(is, text)
	}
	slices.Sort(is)
	return fmt.Sprintf("%d active, %d succeeded, %d failed %v", j.Status.Active, j.Status.Succeeded, j.Status.Failed, is)
}

func TestJobCompletes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		with    func(*batchv1.JobSpec)
		want    string
		indexes string
	}{
		{"one Pod", func(*batchv1.JobSpec) {}, "0 active, 1 succeeded, 0 failed [Complete SuccessCriteriaMet]", ""},
		{"five completions, two at a time", func(s *batchv1.JobSpec) { s.Completions, s.Parallelism = new(int32(5)), new(int32(2)) },
			"0 active, 5 succeeded, 0 failed [Complete SuccessCriteriaMet]", ""},
		{"work queue", func(s *batchv1.JobSpec) { s.Parallelism = new(int32(3)) },
			"0 active, 3 succeeded, 0 failed [Complete SuccessCriteriaMet]", ""},
		{"indexed", func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism, s.CompletionMode = new(int32(4)), new(int32(2)), new(batchv1.IndexedCompletion)
		}, "0 active, 4 succeeded, 0 failed [Complete SuccessCriteriaMet]", "0-3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.Create(job("x", test.with))
			c.settle()
			equal(t, "job", test.want, c.jobLine())
			var j batchv1.Job
			c.get("x", &j)
			equal(t, "indexes", test.indexes, j.Status.CompletedIndexes)
			if j.Status.StartTime == nil || j.Status.CompletionTime == nil {
				t.Errorf("started %v, completed %v", j.Status.StartTime, j.Status.CompletionTime)
			}
			var list corev1.PodList
			c.list(&list)
			for _, p := range list.Items {
				equal(t, "finalizers of "+p.Name, 0, len(p.Finalizers))
			}
		})
	}
}

func TestJobRetriesUntilItsBackoffLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=x", Fate: workloads.Fail})
		c.Create(job("x", func(s *batchv1.JobSpec) { s.BackoffLimit = new(int32(2)) }))
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "0 active, 0 succeeded, 1 failed []"},
			{10 * time.Second, "0 active, 0 succeeded, 2 failed []"},
			{10 * time.Second, "0 active, 0 succeeded, 2 failed []"},
			{10 * time.Second, "0 active, 0 succeeded, 3 failed [Failed (BackoffLimitExceeded) FailureTarget]"},
		} {
			time.Sleep(step.after)
			c.settle()
			equal(t, "job", step.want, c.jobLine())
		}
	})
}

func TestJobMissesItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=x", Fate: workloads.Complete, After: time.Hour})
		c.Create(job("x", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(int64(60)) }))
		c.settle()
		equal(t, "job", "1 active, 0 succeeded, 0 failed []", c.jobLine())
		time.Sleep(time.Minute)
		c.settle()
		equal(t, "job", "0 active, 0 succeeded, 1 failed [Failed (DeadlineExceeded) FailureTarget]", c.jobLine())
		equal(t, "pods", []string(nil), c.pods())
	})
}

func TestJobIsSuspendedAndResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=x", Fate: workloads.Complete, After: time.Minute})
		c.Create(job("x", func(s *batchv1.JobSpec) { s.Suspend = new(true) }))
		c.settle()
		equal(t, "suspended", "0 active, 0 succeeded, 0 failed [Suspended]", c.jobLine())
		suspend := func(yes bool) {
			var j batchv1.Job
			c.get("x", &j)
			j.Spec.Suspend = &yes
			c.update(&j)
			c.settle()
		}
		suspend(false)
		equal(t, "resumed", "1 active, 0 succeeded, 0 failed [not Suspended]", c.jobLine())
		suspend(true)
		equal(t, "suspended again", "0 active, 0 succeeded, 0 failed [Suspended]", c.jobLine())
		equal(t, "pods", []string(nil), c.pods())
		suspend(false)
		time.Sleep(time.Minute)
		c.settle()
		equal(t, "completed", "0 active, 1 succeeded, 0 failed [Complete SuccessCriteriaMet not Suspended]", c.jobLine())
	})
}

func TestJobExpiresAfterItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.Create(job("x", func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = new(int32(30)) }))
		c.settle()
		time.Sleep(30 * time.Second)
		c.settle()
		var list batchv1.JobList
		c.list(&list)
		equal(t, "jobs", 0, len(list.Items))
		equal(t, "pods", []string(nil), c.pods())
	})
}

func TestJobDeletionOrphansPodsOnRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, workloads.Outcome{Selector: "app=x", Fate: workloads.Complete, After: time.Hour})
	j := job("x")
	c.Create(j)
	c.settle()
	equal(t, "pods", []string{"x-* Running ready"}, c.pods())
	if err := c.Client.Delete(c.Context(), j); err != nil { // orphans by default
		t.Fatal(err)
	}
	c.settle()
	var list corev1.PodList
	c.list(&list)
	if len(list.Items) != 1 || len(list.Items[0].Finalizers) != 0 {
		t.Fatalf("Pods after their Job: %v", c.pods())
	}
}
