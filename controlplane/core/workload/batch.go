// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/podwarning"
)

// orphanAdvice is the warning of kube-apiserver for those who delete a Job and do not
// say what is to become of its Pods.
const orphanAdvice = "child pods are preserved by default when jobs are deleted; " +
	"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

func batchKinds() []*resource.Resource {
	type job = *batchv1.Job
	return []*resource.Resource{
		kind.Definition[batchv1.Job, job]{
			Group: "batch", Version: "v1", Plural: "jobs", Categories: []string{"all"}, Family: podspec.Family(),
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Status:   true, Generations: true, Unconditional: true,
			Defaults: func(j job) {
				defaultJobSpec(&j.Spec)
				kind.Fill(&j.Spec.Parallelism, int32(1))
				if len(j.Labels) == 0 && len(j.Spec.Template.Labels) > 0 {
					j.Labels = maps.Clone(j.Spec.Template.Labels)
				}
			},
			Prepare:  prepareJob,
			Validate: validateJob, ValidateStatus: validateJobStatus,
			Warnings:             func(j, old job) []string { return templateWarnings(j, old, &j.Spec.Template) },
			Columns:              kind.Columns("Name", "Status", "Completions", "Duration", "Age", "Containers*", "Images*", "Selector*"),
			Row:                  jobRow,
			FieldSelectorMessage: "field label %q not supported for Job",
			Selectable: []kind.Selectable[job]{
				{Path: "status.successful", Value: func(j job) string { return fmt.Sprint(j.Status.Succeeded) }},
			},
			Deletion: resource.DeletionRules{Propagation: metav1.DeletePropagationOrphan, PropagationWarning: orphanAdvice},
		}.Resource(),
		kind.Definition[batchv1.CronJob, *batchv1.CronJob]{
			Group: "batch", Version: "v1", Plural: "cronjobs", Short: []string{"cj"}, Categories: []string{"all"}, Family: podspec.Family(),
			Metadata: kind.Metadata{StatusErrorsOnce: true},
			Status:   true, Generations: true, Unconditional: true,
			Defaults: defaultCronJob,
			Validate: validateCronJob,
			Prepare: func(_ context.Context, c, _ *batchv1.CronJob) {
				podspec.PrepareTemplate(&c.Spec.JobTemplate.Spec.Template)
			},
			Warnings: func(c, old *batchv1.CronJob) []string {
				if old != nil && old.Generation == c.Generation {
					return nil
				}
				return append(nameWarnings(c, old == nil), podwarning.OfTemplate(field.NewPath("spec", "jobTemplate", "spec", "template"), &c.Spec.JobTemplate.Spec.Template)...)
			},
			Columns: kind.Columns("Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age",
				"Containers*", "Images*", "Selector*"),
			Row: func(c *batchv1.CronJob) []any {
				names, images := kind.ContainerText(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
				last := kind.None
				if c.Status.LastScheduleTime != nil {
					last = table.Age(*c.Status.LastScheduleTime)
				}
				suspended := "False"
				switch {
				case c.Spec.Suspend == nil:
					suspended = "<unset>"
				case *c.Spec.Suspend:
					suspended = "True"
				}
				return []any{
					c.Name, c.Spec.Schedule, kind.OrNone(kind.Value(c.Spec.TimeZone)), suspended, kind.Count(c.Status.Active), last, kind.Age(c),
					names, images, kind.SelectorText(c.Spec.JobTemplate.Spec.Selector),
				}
			},
		}.Resource(),
	}
}

// defaultJobSpec fills in a Job; the Job template of a CronJob stays as it is.
func defaultJobSpec(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions, s.Parallelism = new(int32), new(int32)
		*s.Completions, *s.Parallelism = 1, 1
	}
	if s.BackoffLimit == nil {
		n := int32(6)
		if s.BackoffLimitPerIndex != nil {
			n = 1<<31 - 1
		}
		s.BackoffLimit = &n
	}
	kind.Fill(&s.CompletionMode, batchv1.NonIndexedCompletion)
	kind.Fill(&s.Suspend, false)
	kind.Fill(&s.ManualSelector, false)
	if s.PodFailurePolicy != nil {
		for i := range s.PodFailurePolicy.Rules {
			for j := range s.PodFailurePolicy.Rules[i].OnPodConditions {
				kind.OrDefault(&s.PodFailurePolicy.Rules[i].OnPodConditions[j].Status, corev1.ConditionTrue)
			}
		}
	}
	if s.PodReplacementPolicy == nil {
		policy := batchv1.TerminatingOrFailed
		if s.PodFailurePolicy != nil {
			policy = batchv1.Failed
		}
		s.PodReplacementPolicy = &policy
	}
	podspec.DefaultTemplate(&s.Template)
}

// prepareJob makes the selector of a new Job, and labels its Pods for it, unless
// the client takes care of that. A Job without labels has those of its Pods.
func prepareJob(_ context.Context, j, old *batchv1.Job) {
	podspec.PrepareTemplate(&j.Spec.Template)
	same := maps.Equal(j.Labels, j.Spec.Template.Labels)
	if len(j.Labels) == 0 && len(validation.IsValidLabelValue(j.Name)) > 0 {
		same = false // those of the Pods are refused, which is enough
	}
	if old == nil && !kind.Value(j.Spec.ManualSelector) {
		selectOwnPods(j)
	}
	if same { // they are by default, and stay so
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
}

func selectOwnPods(j *batchv1.Job) {
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	for key, v := range map[string]string{
		batchv1.JobNameLabel: j.Name, "job-name": j.Name,
		batchv1.ControllerUidLabel: string(j.UID), "controller-uid": string(j.UID),
	} {
		if _, taken := j.Spec.Template.Labels[key]; !taken {
			j.Spec.Template.Labels[key] = v
		}
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, taken := j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !taken {
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	}
}

func defaultCronJob(c *batchv1.CronJob) {
	kind.OrDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	kind.Fill(&c.Spec.Suspend, false)
	kind.Fill(&c.Spec.SuccessfulJobsHistoryLimit, int32(3))
	kind.Fill(&c.Spec.FailedJobsHistoryLimit, int32(1))
	// The rest of the template is filled in when a Job is made of it.
	podspec.DefaultTemplate(&c.Spec.JobTemplate.Spec.Template)
}

func jobRow(j *batchv1.Job) []any {
	var completions string
	switch {
	case j.Spec.Completions != nil:
		completions = kind.Fraction(j.Status.Succeeded, *j.Spec.Completions)
	case kind.Value(j.Spec.Parallelism) > 1:
		completions = fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, *j.Spec.Parallelism)
	default:
		completions = kind.Fraction(j.Status.Succeeded, 1)
	}
	took := ""
	switch {
	case j.Status.StartTime == nil:
	case j.Status.CompletionTime == nil:
		took = duration.HumanDuration(time.Since(j.Status.StartTime.Time))
	default:
		took = duration.HumanDuration(j.Status.CompletionTime.Sub(j.Status.StartTime.Time))
	}
	names, images := kind.ContainerText(j.Spec.Template.Spec.Containers)
	return []any{j.Name, jobStatus(j), completions, took, kind.Age(j), names, images, kind.SelectorText(j.Spec.Selector)}
}

func jobStatus(j *batchv1.Job) string {
	has := func(t batchv1.JobConditionType) bool {
		for _, c := range j.Status.Conditions {
			if c.Type == t && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	switch {
	case has(batchv1.JobComplete):
		return "Complete"
	case has(batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case has(batchv1.JobSuspended):
		return "Suspended"
	case has(batchv1.JobFailureTarget):
		return "FailureTarget"
	case has(batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	default:
		return "Running"
	}
}
