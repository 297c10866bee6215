// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
)

// Annotations of Pods of Jobs with a limit for each index.
const (
	failureCount        = "batch.kubernetes.io/job-index-failure-count"
	ignoredFailureCount = "batch.kubernetes.io/job-index-ignored-failure-count"
)

// verdict is what the pod failure policy of a Job decides for a Pod that has failed.
type verdict struct {
	action batchv1.PodFailurePolicyAction
	// message of the condition, if the Job fails because of the Pod.
	message string
	// failures and ignored count the Pods of its index that have failed before it.
	failures, ignored int
}

// judge returns the verdict on a Pod that has failed. Without a policy, or
// a rule that matches, the Pod counts as failed.
func (r *run) judge(p *cluster.Object) verdict {
	if v, known := r.verdicts[p.UID]; known {
		return v
	}
	v := verdict{action: batchv1.PodFailurePolicyActionCount}
	if r.j.Spec.PodFailurePolicy != nil || r.perIndex() {
		if pod := cluster.Stored[corev1.Pod](r.Turn, p.Key); pod != nil {
			v.failures, _ = strconv.Atoi(pod.Annotations[failureCount])       // 0 without one
			v.ignored, _ = strconv.Atoi(pod.Annotations[ignoredFailureCount]) // as above
			r.apply(pod, &v)
		}
	}
	if r.verdicts == nil {
		r.verdicts = map[types.UID]verdict{}
	}
	r.verdicts[p.UID] = v
	return v
}

// apply finds the first rule that matches a Pod.
func (r *run) apply(pod *corev1.Pod, v *verdict) {
	if r.j.Spec.PodFailurePolicy == nil {
		return
	}
	for i, rule := range r.j.Spec.PodFailurePolicy.Rules {
		what := ""
		if rule.OnExitCodes != nil {
			if s := exited(&pod.Status, rule.OnExitCodes); s != nil {
				what = fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d", s.Name, pod.Namespace, pod.Name, s.State.Terminated.ExitCode)
			}
		} else if c := matches(&pod.Status, rule.OnPodConditions); c != nil {
			what = fmt.Sprintf("Pod %s/%s has condition %v", pod.Namespace, pod.Name, c.Type)
		}
		if what != "" {
			v.action, v.message = rule.Action, fmt.Sprintf("%s matching %v rule at index %d", what, rule.Action, i)
			return
		}
	}
}

// exited returns the container whose exit code a rule is about.
func exited(s *corev1.PodStatus, on *batchv1.PodFailurePolicyOnExitCodesRequirement) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range list {
			end := list[i].State.Terminated
			if end == nil || end.ExitCode == 0 || on.ContainerName != nil && *on.ContainerName != list[i].Name {
				continue
			}
			if slices.Contains(on.Values, end.ExitCode) == (on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
				return &list[i]
			}
		}
	}
	return nil
}

// matches returns the condition of a Pod that a rule is about.
func matches(s *corev1.PodStatus, on []batchv1.PodFailurePolicyOnPodConditionsPattern) *corev1.PodCondition {
	for _, pattern := range on {
		for i := range s.Conditions {
			if c := &s.Conditions[i]; c.Type == pattern.Type && c.Status == pattern.Status {
				return c
			}
		}
	}
	return nil
}

// perIndex reports whether every index of the Job has a limit of its own.
func (r *run) perIndex() bool { return r.indexed() && r.j.Spec.BackoffLimitPerIndex != nil }

// failJob returns why the policy has the Job fail, empty if it does not.
func (r *run) failJob() string {
	if r.j.Spec.PodFailurePolicy == nil {
		return ""
	}
	for _, p := range r.pods {
		if p.Phase != corev1.PodFailed || !p.Tracked {
			continue
		}
		if v := r.judge(p); v.action == batchv1.PodFailurePolicyActionFailJob {
			return v.message
		}
	}
	return ""
}

// countIndexes finds the indexes that have failed.
func (r *run) countIndexes() {
	if !r.perIndex() {
		return
	}
	if s := r.j.Status.FailedIndexes; s != nil {
		r.failedIndexes = parseIndexes(*s)
	}
	for _, p := range r.pods {
		if !r.hasFailed(p) || p.Ordinal < 0 || p.Ordinal >= int(*r.j.Spec.Completions) ||
			slices.Contains(r.indexes, p.Ordinal) || slices.Contains(r.failedIndexes, p.Ordinal) {
			continue
		}
		v := r.judge(p)
		if v.action == batchv1.PodFailurePolicyActionFailIndex ||
			v.action != batchv1.PodFailurePolicyActionIgnore && v.failures >= int(*r.j.Spec.BackoffLimitPerIndex) {
			r.failedIndexes = append(r.failedIndexes, p.Ordinal)
		}
	}
	slices.Sort(r.failedIndexes)
}

// tooManyIndexes returns the failure of a Job whose indexes have failed, nil if it
// goes on.
func (r *run) tooManyIndexes() *batchv1.JobCondition {
	n := len(r.failedIndexes)
	if limit := r.j.Spec.MaxFailedIndexes; limit != nil && n > int(*limit) {
		return r.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonMaxFailedIndexesExceeded,
			"Job has exceeded the specified maximal number of failed indexes")
	}
	if n > 0 && n+len(r.indexes) >= int(*r.j.Spec.Completions) {
		return r.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonFailedIndexes, "Job has failed indexes")
	}
	return nil
}

// succeeds returns the condition of a Job whose success policy is met by the indexes
// that have succeeded, nil otherwise.
func (r *run) succeeds() *batchv1.JobCondition {
	if r.j.Spec.SuccessPolicy == nil || !r.indexed() {
		return nil
	}
	for i, rule := range r.j.Spec.SuccessPolicy.Rules {
		done, least := len(r.indexes), 0
		if rule.SucceededIndexes != nil {
			wanted := parseIndexes(*rule.SucceededIndexes)
			done, least = 0, len(wanted)
			for _, n := range wanted {
				if slices.Contains(r.indexes, n) {
					done++
				}
			}
		}
		if rule.SucceededCount != nil {
			least = int(*rule.SucceededCount)
		}
		if done >= least {
			return r.condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonSuccessPolicy, fmt.Sprintf("Matched rules at index %d", i))
		}
	}
	return nil
}

// annotateFailures sets the annotations of a new Pod that say how often its index has failed, and returns
// the time from which on the Pod may be created.
func (r *run) annotateFailures(pod *corev1.Pod, index int) time.Time {
	var last *cluster.Object
	for _, p := range r.pods {
		if p.Ordinal == index && r.hasFailed(p) && (last == nil || p.Created > last.Created) {
			last = p
		}
	}
	failures, ignored := 0, 0
	var at time.Time
	if last != nil {
		v := r.judge(last)
		failures, ignored = v.failures, v.ignored
		if v.action == batchv1.PodFailurePolicyActionIgnore {
			ignored++
		} else {
			failures++
		}
		if !last.FinishedAt.IsZero() {
			delay := firstReplacement
			for range failures - 1 {
				delay = min(2*delay, lastReplacement)
			}
			at = last.FinishedAt.Add(delay)
		}
	}
	pod.Annotations = cluster.With(pod.Annotations, failureCount, strconv.Itoa(failures))
	if ignored > 0 {
		pod.Annotations[ignoredFailureCount] = strconv.Itoa(ignored)
	}
	return at
}
