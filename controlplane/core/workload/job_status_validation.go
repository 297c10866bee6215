// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// progress is what the conditions of a Job say.
type progress struct{ complete, failed, target, criteria, suspended bool }

func progressOf(s *batchv1.JobStatus) progress {
	is := func(t batchv1.JobConditionType) bool {
		for _, c := range s.Conditions {
			if c.Type == t {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	}
	return progress{
		complete: is(batchv1.JobComplete), failed: is(batchv1.JobFailed), target: is(batchv1.JobFailureTarget),
		criteria: is(batchv1.JobSuccessCriteriaMet), suspended: is(batchv1.JobSuspended),
	}
}

func (p progress) finished() bool { return p.complete || p.failed }

// jobStatusChange is a status of a Job beside the one before. Most rules are about what
// changes alone, so that a status that is wrong already can be written otherwise.
type jobStatusChange struct {
	spec        *batchv1.JobSpec
	now, before *batchv1.JobStatus
	is, was     progress
}

func validateJobStatus(j, old *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("status")
	c := jobStatusChange{spec: &j.Spec, now: &j.Status, before: &old.Status, is: progressOf(&j.Status), was: progressOf(&old.Status)}
	checkJobCounts(&f, c.now)
	c.checkConditions(&f)
	c.checkTimes(&f)
	if c.is.finished() {
		c.checkFinished(&f)
	}
	c.checkIndexes(&f)
	if !equal(c.now.Ready, c.before.Ready) || c.now.Active != c.before.Active {
		if ready := c.now.Ready; ready != nil && *ready > c.now.Active {
			f.Invalid("ready", *ready, "cannot set more ready pods than active")
		}
	}
	c.checkCounters(&f)
	return errs
}

// equal compares optional values.
func equal[T comparable](a, b *T) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func checkJobCounts(f *valid.Field, s *batchv1.JobStatus) {
	f.NotNegative("active", int64(s.Active))
	f.NotNegative("succeeded", int64(s.Succeeded))
	f.NotNegative("failed", int64(s.Failed))
	notNegative(f, "ready", s.Ready)
	notNegative(f, "terminating", s.Terminating)
	u := s.UncountedTerminatedPods
	if u == nil {
		return
	}
	pods, seen := f.Child("uncountedTerminatedPods"), sets.New[types.UID]()
	for _, l := range []struct {
		name string
		ids  []types.UID
	}{{"succeeded", u.Succeeded}, {"failed", u.Failed}} {
		list := pods.Child(l.name)
		for i, id := range l.ids {
			at := list.Index(i)
			switch {
			case id == "":
				at.Invalid(valid.Self, id, "must not be empty")
			case seen.Has(id):
				at.Duplicate(valid.Self, id)
			}
			seen.Insert(id)
		}
	}
}

// checkConditions has the rules of how a Job ends: first it is known that it
// will, then all its Pods have ended.
func (c *jobStatusChange) checkConditions(f *valid.Field) {
	is, was := c.is, c.was
	refuse := func(when bool, why string) {
		if when {
			f.Invalid("conditions", field.OmitValueType{}, why)
		}
	}
	if is.complete != was.complete || is.failed != was.failed {
		refuse(is.complete && is.failed, "cannot set Complete=True and Failed=true conditions")
	}
	if is.complete != was.complete || is.target != was.target {
		refuse(is.complete && is.target, "cannot set Complete=True and FailureTarget=true conditions")
	}
	if is.failed != was.failed || !equal(c.now.FailedIndexes, c.before.FailedIndexes) {
		refuse(is.failed && !is.target, "cannot set Failed=True condition without the FailureTarget=true condition")
	}
	if is.complete != was.complete || is.criteria != was.criteria {
		refuse(is.complete && !is.criteria, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	}
	refuse(is.criteria && is.failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
	refuse(is.criteria && is.target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	refuse(c.spec.SuccessPolicy != nil && is.complete && !is.criteria,
		"cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
	for _, final := range []struct {
		name    string
		was, is bool
	}{
		{"Failed", was.failed, is.failed}, {"Complete", was.complete, is.complete}, {"FailureTarget", was.target, is.target},
	} {
		refuse(final.was && !final.is, fmt.Sprintf("cannot disable the terminal %s=True condition", final.name))
	}
	refuse(was.criteria && !is.criteria, "cannot disable the SuccessCriteriaMet=True condition")
	refuse(was.complete && !was.criteria && is.criteria, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
}

// checkTimes has the rules of when a Job has started and was complete.
func (c *jobStatusChange) checkTimes(f *valid.Field) {
	start, end := c.now.StartTime, c.now.CompletionTime
	started, ended := !start.Equal(c.before.StartTime), !end.Equal(c.before.CompletionTime)
	if ended || c.is.complete != c.was.complete {
		switch {
		case end != nil && !c.is.complete:
			f.Invalid("completionTime", end, "cannot set completionTime when there is no Complete=True condition")
		case end == nil && c.is.complete:
			f.Required("completionTime", "completionTime is required for Complete jobs")
		}
	}
	if (started || ended) && start != nil && end != nil && end.Before(start) {
		f.Invalid("completionTime", end, "must be equal to or after `startTime`")
	}
	if ended && end != nil && c.before.CompletionTime != nil {
		f.Invalid("completionTime", end, "field is immutable")
	}
	// What suspends a Job takes its start away, which shows when it goes on.
	resumed := c.was.suspended && c.notSuspended()
	if started && c.before.StartTime != nil && !kind.Value(c.spec.Suspend) && !resumed {
		f.Invalid("startTime", start, "field is immutable for unsuspended job once set")
	}
}

// notSuspended reports whether the conditions say so.
func (c *jobStatusChange) notSuspended() bool {
	for _, condition := range c.now.Conditions {
		if condition.Type == batchv1.JobSuspended {
			return condition.Status == corev1.ConditionFalse
		}
	}
	return false
}

// checkFinished has the rules of a Job that has ended.
func (c *jobStatusChange) checkFinished(f *valid.Field) {
	s, before, ends := c.now, c.before, !c.was.finished()
	if (ends || s.Active != before.Active) && s.Active > 0 {
		f.Invalid("active", s.Active, "active>0 is invalid for finished job")
	}
	if (ends || !equal(s.Terminating, before.Terminating)) && kind.Value(s.Terminating) > 0 {
		f.Invalid("terminating", *s.Terminating, "terminating>0 is invalid for finished job")
	}
	nothingToDo := kind.Value(c.spec.Suspend) && c.spec.Completions != nil && *c.spec.Completions == 0
	if (ends || !s.StartTime.Equal(before.StartTime)) && s.StartTime == nil && !nothingToDo {
		f.Required("startTime", "startTime is required for finished job")
	}
	u := s.UncountedTerminatedPods
	if u != nil && len(u.Succeeded)+len(u.Failed) > 0 && (ends || !equality.Semantic.DeepEqual(u, before.UncountedTerminatedPods)) {
		f.Invalid("uncountedTerminatedPods", valid.Untagged(u), "must be empty for finished job")
	}
}

// checkIndexes has the rules of which indexes are done.
func (c *jobStatusChange) checkIndexes(f *valid.Field) {
	s, completions := c.now, c.spec.Completions
	completed, failed := s.CompletedIndexes != c.before.CompletedIndexes, !equal(s.FailedIndexes, c.before.FailedIndexes)
	if completed {
		if completions != nil {
			if _, err := countIndexes(s.CompletedIndexes, *completions); err != nil {
				f.Invalid("completedIndexes", s.CompletedIndexes, fmt.Sprintf("error parsing completedIndexes: %v", err))
			}
		}
		if s.CompletedIndexes != "" && !isIndexed(c.spec) {
			f.Invalid("completedIndexes", s.CompletedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode")
		}
	}
	if s.FailedIndexes == nil {
		return
	}
	if failed {
		if c.spec.BackoffLimitPerIndex == nil {
			f.Invalid("failedIndexes", *s.FailedIndexes, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
		} else if completions != nil {
			if _, err := countIndexes(*s.FailedIndexes, *completions); err != nil {
				f.Invalid("failedIndexes", *s.FailedIndexes, fmt.Sprintf("error parsing failedIndexes: %v", err))
			}
		}
	}
	if (completed || failed) && completions != nil {
		if i, common := commonIndex(s.CompletedIndexes, *s.FailedIndexes, *completions); common {
			f.Invalid("failedIndexes", *s.FailedIndexes, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", i))
		}
	}
}

// checkCounters refuses to count backwards, but for Jobs that can shrink.
func (c *jobStatusChange) checkCounters(f *valid.Field) {
	if c.now.Failed < c.before.Failed {
		f.Invalid("failed", c.now.Failed, "cannot decrease the failed counter")
	}
	shrinks := isIndexed(c.spec) && equal(c.spec.Completions, c.spec.Parallelism)
	if c.now.Succeeded < c.before.Succeeded && !shrinks {
		f.Invalid("succeeded", c.now.Succeeded, "cannot decrease the succeeded counter")
	}
}
