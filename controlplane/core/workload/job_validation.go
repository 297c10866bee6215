// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateJob(j, old *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &j.Spec
	f := root.Child("spec")
	if old == nil && s.Selector != nil && !kind.Value(s.ManualSelector) {
		checkGenerated(&f, j)
	}
	checkWholeJob(&root, &f, j)
	if old != nil {
		checkJobChange(&f, s, old)
	}
	return errs
}

// checkWholeSpec has the rules of the spec of a Job that is not a template.
func checkWholeSpec(f *valid.Field, s *batchv1.JobSpec) {
	checkJobSpec(f, s)
	if s.Selector == nil {
		f.Required("selector", "")
	} else {
		f.Selector("selector", s.Selector)
	}
	if selector, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !selector.Matches(labels.Set(s.Template.Labels)) {
		template := f.Child("template")
		metadata := template.Child("metadata")
		metadata.Invalid("labels", s.Template.Labels, mismatch)
	}
}

// checkWholeJob adds those that look at the name.
func checkWholeJob(root, f *valid.Field, j *batchv1.Job) {
	s := &j.Spec
	checkWholeSpec(f, s)
	if n := kind.Value(s.Completions); n > 0 && isIndexed(s) {
		if last := fmt.Sprintf("%s-%d", j.Name, n-1); len(validation.IsDNS1123Label(last)) > 0 {
			metadata := root.Child("metadata")
			metadata.Invalid("name", j.Name, "will not able to create pod with invalid DNS label: "+last)
		}
	}
}

func isIndexed(s *batchv1.JobSpec) bool {
	return kind.Value(s.CompletionMode) == batchv1.IndexedCompletion
}

// checkGenerated requires the selector and the labels that the server makes.
func checkGenerated(f *valid.Field, j *batchv1.Job) {
	own := map[string]string{
		"controller-uid": string(j.UID), "job-name": j.Name, batchv1.ControllerUidLabel: string(j.UID), batchv1.JobNameLabel: j.Name,
	}
	template := f.Child("template")
	metadata := template.Child("metadata")
	list := metadata.Child("labels")
	for _, key := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		at := list.Key(key)
		if v, ok := j.Spec.Template.Labels[key]; !ok {
			at.Required(valid.Self, "must be '"+own[key]+"'")
		} else if v != own[key] {
			at.Invalid(valid.Self, j.Spec.Template.Labels, "must be '"+own[key]+"'")
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !s.Matches(labels.Set(own)) {
		f.Invalid("selector", j.Spec.Selector, "`selector` not auto-generated")
	}
}

func checkJobChange(f *valid.Field, s *batchv1.JobSpec, old *batchv1.Job) {
	before := &old.Spec
	switch {
	case !isIndexed(s):
		f.Unchanged("completions", s.Completions, before.Completions)
	case equality.Semantic.DeepEqual(s.Completions, before.Completions) || s.Completions == nil:
	case *s.Completions != kind.Value(s.Parallelism):
		f.Invalid("completions", *s.Completions, "can only be modified in tandem with spec.parallelism")
	}
	f.Unchanged("selector", s.Selector, before.Selector)
	checkJobTemplateChange(f, &s.Template, old)
	f.Unchanged("completionMode", s.CompletionMode, before.CompletionMode)
	f.Unchanged("podFailurePolicy", s.PodFailurePolicy, before.PodFailurePolicy)
	f.Unchanged("backoffLimitPerIndex", s.BackoffLimitPerIndex, before.BackoffLimitPerIndex)
	f.Unchanged("managedBy", s.ManagedBy, before.ManagedBy)
	f.Unchanged("successPolicy", s.SuccessPolicy, before.SuccessPolicy)
}

func isSuspended(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
	})
}

// checkJobTemplateChange admits what queues adjust in a Job that waits and has no Pods:
// its resources and where it is placed.
func checkJobTemplateChange(f *valid.Field, now *corev1.PodTemplateSpec, old *batchv1.Job) {
	template := old.Spec.Template.DeepCopy()
	if !kind.Value(old.Spec.Suspend) || old.Status.Active > 0 || old.Status.StartTime != nil && !isSuspended(old) {
		f.Unchanged("template", now, template)
		return
	}
	for _, lists := range [][2][]corev1.Container{{now.Spec.Containers, template.Spec.Containers}, {now.Spec.InitContainers, template.Spec.InitContainers}} {
		if len(lists[0]) != len(lists[1]) {
			continue
		}
		for i := range lists[0] {
			if lists[0][i].Name == lists[1][i].Name {
				lists[1][i].Resources = lists[0][i].Resources
			}
		}
	}
	switch is, was := now.Spec.Affinity, template.Spec.Affinity; {
	case is == nil && was != nil:
		if was.NodeAffinity = nil; *was == (corev1.Affinity{}) {
			template.Spec.Affinity = nil
		}
	case is != nil && was == nil:
		template.Spec.Affinity = &corev1.Affinity{NodeAffinity: is.NodeAffinity}
	case is != nil:
		was.NodeAffinity = is.NodeAffinity
	}
	template.Spec.NodeSelector, template.Spec.Tolerations, template.Spec.SchedulingGates = now.Spec.NodeSelector, now.Spec.Tolerations, now.Spec.SchedulingGates
	f.Unchanged("template.spec", now.Spec, template.Spec)
}

func checkJobSpec(f *valid.Field, s *batchv1.JobSpec) {
	notNegative(f, "parallelism", s.Parallelism)
	notNegative(f, "completions", s.Completions)
	notNegative(f, "activeDeadlineSeconds", s.ActiveDeadlineSeconds)
	notNegative(f, "backoffLimit", s.BackoffLimit)
	notNegative(f, "ttlSecondsAfterFinished", s.TTLSecondsAfterFinished)
	notNegative(f, "backoffLimitPerIndex", s.BackoffLimitPerIndex)
	notNegative(f, "maxFailedIndexes", s.MaxFailedIndexes)
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		f.Required("backoffLimitPerIndex", "when maxFailedIndexes is specified")
	}
	if m := s.ManagedBy; m != nil {
		f.Add(validation.IsDomainPrefixedPath(f.PathOf("managedBy"), *m)...)
		if len(*m) > 63 {
			f.TooLong("managedBy", 63)
		}
	}
	checkIndexes(f, s)
	if s.PodFailurePolicy != nil {
		at := f.Child("podFailurePolicy")
		checkFailurePolicy(&at, s)
	}
	if s.SuccessPolicy != nil {
		at := f.Child("successPolicy")
		if isIndexed(s) {
			checkSuccessPolicy(&at, s)
		} else {
			at.Invalid(valid.Self, valid.Untagged(s.SuccessPolicy), "requires indexed completion mode")
		}
	}
	if p := s.PodReplacementPolicy; p != nil {
		if s.PodFailurePolicy != nil {
			valid.Supported(f, "podReplacementPolicy", *p, batchv1.Failed)
		} else {
			valid.Supported(f, "podReplacementPolicy", *p, batchv1.Failed, batchv1.TerminatingOrFailed)
		}
	}
	template := f.Child("template")
	podspec.CheckTemplate(&template, &s.Template)
	spec := template.Child("spec")
	switch p := s.Template.Spec.RestartPolicy; p {
	case corev1.RestartPolicyAlways, "":
		spec.Required("restartPolicy", `valid values: "OnFailure", "Never"`)
	case corev1.RestartPolicyNever:
	case corev1.RestartPolicyOnFailure:
		if s.PodFailurePolicy != nil {
			spec.Invalid("restartPolicy", p, `only "Never" is supported when podFailurePolicy is specified`)
		}
	default:
		valid.NotSupported(&spec, "restartPolicy", p, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	}
}

// checkIndexes has the rules of Jobs whose Pods have numbers.
func checkIndexes(f *valid.Field, s *batchv1.JobSpec) {
	const most, many, fewParallel, fewFailed = 100_000, 100_000, 10_000, 10_000
	if m := s.CompletionMode; m != nil {
		valid.Supported(f, "completionMode", *m, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	}
	if !isIndexed(s) {
		if kind.Value(s.CompletionMode) != batchv1.NonIndexedCompletion && s.CompletionMode != nil {
			return
		}
		if n := s.BackoffLimitPerIndex; n != nil {
			f.Invalid("backoffLimitPerIndex", *n, "requires indexed completion mode")
		}
		if n := s.MaxFailedIndexes; n != nil {
			f.Invalid("maxFailedIndexes", *n, "requires indexed completion mode")
		}
		return
	}
	if s.Completions == nil {
		f.Required("completions", fmt.Sprintf("when completion mode is %s", batchv1.IndexedCompletion))
	}
	parallel, failed := kind.Value(s.Parallelism), kind.Value(s.MaxFailedIndexes)
	if parallel > most {
		f.Invalid("parallelism", parallel, fmt.Sprintf("must be less than or equal to %d when completion mode is %s", most, batchv1.IndexedCompletion))
	}
	if s.Completions != nil && failed > *s.Completions {
		f.Invalid("maxFailedIndexes", failed, "must be less than or equal to completions")
	}
	if failed > most {
		f.Invalid("maxFailedIndexes", failed, fmt.Sprintf("must be less than or equal to %d", most))
	}
	if kind.Value(s.Completions) <= many || s.BackoffLimitPerIndex == nil {
		return
	}
	const limited = "must be less than or equal to %d when completions are above %d and used with backoff limit per index"
	if s.MaxFailedIndexes == nil {
		f.Required("maxFailedIndexes", fmt.Sprintf("must be specified when completions is above %d", many))
	}
	if parallel > fewParallel {
		f.Invalid("parallelism", parallel, fmt.Sprintf(limited, fewParallel, many))
	}
	if failed > fewFailed {
		f.Invalid("maxFailedIndexes", failed, fmt.Sprintf(limited, fewFailed, many))
	}
}

func checkFailurePolicy(f *valid.Field, s *batchv1.JobSpec) {
	rules := f.Child("rules")
	if n := len(s.PodFailurePolicy.Rules); n > 20 {
		rules.TooMany(valid.Self, n, 20)
	}
	for i := range s.PodFailurePolicy.Rules {
		r, at := &s.PodFailurePolicy.Rules[i], rules.Index(i)
		switch r.Action {
		case "":
			at.Required("action", `valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`)
		case batchv1.PodFailurePolicyActionFailIndex:
			if s.BackoffLimitPerIndex == nil {
				at.Invalid("action", r.Action, "requires the backoffLimitPerIndex to be set")
			}
		default:
			valid.Supported(&at, "action", r.Action, batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
				batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore)
		}
		if r.OnExitCodes != nil {
			codes := at.Child("onExitCodes")
			checkExitCodes(&codes, r.OnExitCodes, &s.Template.Spec)
		}
		conditions := at.Child("onPodConditions")
		if n := len(r.OnPodConditions); n > 20 {
			conditions.TooMany(valid.Self, n, 20)
		}
		for j, p := range r.OnPodConditions {
			one := conditions.Index(j)
			one.Qualified("type", string(p.Type))
			if p.Status == "" {
				one.Required("status", `valid values: ["False" "True" "Unknown"]`)
			} else {
				valid.Supported(&one, "status", p.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)
			}
		}
		switch has := len(r.OnPodConditions) > 0; {
		case has && r.OnExitCodes != nil:
			at.Invalid(valid.Self, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported")
		case !has && r.OnExitCodes == nil:
			at.Invalid(valid.Self, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required")
		}
	}
}

func checkExitCodes(f *valid.Field, r *batchv1.PodFailurePolicyOnExitCodesRequirement, spec *corev1.PodSpec) {
	if r.Operator == "" {
		f.Required("operator", `valid values: ["In" "NotIn"]`)
	} else {
		valid.Supported(f, "operator", r.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	}
	if name := r.ContainerName; name != nil && !slices.ContainsFunc(slices.Concat(spec.Containers, spec.InitContainers),
		func(c corev1.Container) bool { return c.Name == *name }) {
		f.Invalid("containerName", *name, "must be one of the container or initContainer names in the pod template")
	}
	values := f.Child("values")
	switch n := len(r.Values); {
	case n == 0:
		values.Invalid(valid.Self, r.Values, "at least one value is required")
	case n > 255:
		values.TooMany(valid.Self, n, 255)
	}
	seen := sets.New[int32]()
	for i, v := range r.Values {
		at := values.Index(i)
		if r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && v == 0 {
			at.Invalid(valid.Self, v, "must not be 0 for the In operator")
		}
		if seen.Has(v) {
			at.Duplicate(valid.Self, v)
		}
		seen.Insert(v)
	}
	if !slices.IsSorted(r.Values) {
		values.Invalid(valid.Self, r.Values, "must be ordered")
	}
}

func checkSuccessPolicy(f *valid.Field, s *batchv1.JobSpec) {
	rules, completions := f.Child("rules"), kind.Value(s.Completions)
	switch n := len(s.SuccessPolicy.Rules); {
	case n == 0:
		rules.Required(valid.Self, "at least one rules must be specified when the successPolicy is specified")
	case n > 20:
		rules.TooMany(valid.Self, n, 20)
	}
	for i, r := range s.SuccessPolicy.Rules {
		at, listed := rules.Index(i), int32(0)
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			at.Required(valid.Self, "at least one of succeededCount or succeededIndexes must be specified")
		}
		if r.SucceededIndexes != nil {
			const longest = 64 << 10
			if len(*r.SucceededIndexes) > longest {
				at.TooLong("succeededIndexes", longest)
			}
			var err error
			if listed, err = countIndexes(*r.SucceededIndexes, completions); err != nil {
				at.Invalid("succeededIndexes", *r.SucceededIndexes, fmt.Sprintf("error parsing succeededIndexes: %v", err))
			}
		}
		if r.SucceededCount == nil {
			continue
		}
		n := *r.SucceededCount
		at.NotNegative("succeededCount", int64(n))
		if n > completions {
			at.Invalid("succeededCount", n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions))
		}
		if r.SucceededIndexes != nil && n > listed {
			at.Invalid("succeededCount", n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", listed))
		}
	}
}

func validateCronJob(c, old *batchv1.CronJob) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &c.Spec
	f := root.Child("spec")
	if s.Schedule != "" {
		checkSchedule(&f, s, old)
	}
	notNegative(&f, "startingDeadlineSeconds", s.StartingDeadlineSeconds)
	if s.TimeZone != nil && (old == nil || !equality.Semantic.DeepEqual(old.Spec.TimeZone, s.TimeZone)) {
		checkTimeZone(&f, *s.TimeZone)
	}
	valid.RequiredOf(&f, "concurrencyPolicy", s.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	template := f.Child("jobTemplate")
	job := template.Child("spec")
	checkJobSpec(&job, &s.JobTemplate.Spec)
	if s.JobTemplate.Spec.Selector != nil {
		job.Invalid("selector", s.JobTemplate.Spec.Selector, "`selector` will be auto-generated")
	}
	if kind.Value(s.JobTemplate.Spec.ManualSelector) {
		job.Add(field.NotSupported(job.PathOf("manualSelector"), true, []string{"nil", "false"}))
	}
	notNegative(&f, "successfulJobsHistoryLimit", s.SuccessfulJobsHistoryLimit)
	notNegative(&f, "failedJobsHistoryLimit", s.FailedJobsHistoryLimit)
	if old == nil && len(c.Name) > validation.DNS1035LabelMaxLength-11 { // the Jobs are named after it
		metadata := root.Child("metadata")
		metadata.Invalid("name", c.Name, "must be no more than 52 characters")
	}
	return errs
}

func checkSchedule(f *valid.Field, s *batchv1.CronJobSpec, old *batchv1.CronJob) {
	if _, err := cron.ParseStandard(s.Schedule); err != nil {
		f.Invalid("schedule", s.Schedule, err.Error())
	}
	had := old != nil && strings.Contains(old.Spec.Schedule, "TZ")
	switch {
	case !strings.Contains(s.Schedule, "TZ"):
	case had && s.TimeZone != nil:
		f.Invalid("schedule", s.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
	case !had:
		f.Invalid("schedule", s.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	}
}

var timeZonePart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`) })

func checkTimeZone(f *valid.Field, zone string) {
	if zone == "" {
		f.Invalid("timeZone", zone, "timeZone must be nil or non-empty string")
		return
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !timeZonePart().MatchString(part) {
			f.Invalid("timeZone", zone, "unknown time zone "+zone)
			return
		}
	}
	if strings.EqualFold(zone, "Local") {
		f.Invalid("timeZone", zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		f.Invalid("timeZone", zone, err.Error())
	}
}
