// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/pod"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func templateChanged(a, b *corev1.PodTemplateSpec) bool { return !equality.Semantic.DeepEqual(a, b) }

// validateTemplate checks a selector and the Pods that a workload makes.
func validateTemplate(selector *metav1.LabelSelector, t *corev1.PodTemplateSpec, path *field.Path, empty string) field.ErrorList {
	var errs field.ErrorList
	if selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path.Child("selector"), selector, empty))
		}
	}
	switch s, err := metav1.LabelSelectorAsSelector(selector); {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("selector"), selector, "invalid label selector"))
	case !s.Empty() && !s.Matches(labels.Set(t.Labels)): // no selector matches nothing
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, pod.ValidateTemplate(t, path.Child("template"))...)
}

// alwaysRestarts checks the policy of workloads that run for ever.
func alwaysRestarts(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if t.Spec.RestartPolicy == corev1.RestartPolicyAlways || t.Spec.RestartPolicy == "" {
		return nil
	}
	return valid.OneOf(path.Child("template", "spec", "restartPolicy"), t.Spec.RestartPolicy, corev1.RestartPolicyAlways)
}

func validateDeployment(d, old *appsv1.Deployment) field.ErrorList {
	path, s := field.NewPath("spec"), &d.Spec
	errs := valid.NotNegative(path.Child("replicas"), s.Replicas)
	errs = append(errs, validateTemplate(s.Selector, &s.Template, path, "empty selector is invalid for deployment")...)
	errs = append(errs, alwaysRestarts(&s.Template, path)...)
	if s.Template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("template", "spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported"))
	}
	switch p := path.Child("strategy"); s.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.Strategy.RollingUpdate != nil {
			errs = append(errs, field.Forbidden(p.Child("rollingUpdate"), "may not be specified when strategy `type` is '"+string(appsv1.RecreateDeploymentStrategyType)+"'"))
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		if s.Strategy.RollingUpdate == nil {
			errs = append(errs, field.Required(p.Child("rollingUpdate"), "this should be defaulted and never be nil"))
		} else {
			errs = append(errs, validateRolling(s.Strategy.RollingUpdate.MaxUnavailable, s.Strategy.RollingUpdate.MaxSurge, p.Child("rollingUpdate"))...)
		}
	default:
		errs = append(errs, valid.OneOf(p.Child("type"), s.Strategy.Type, appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)...)
	}
	errs = append(errs, valid.NotNegative(path.Child("minReadySeconds"), &s.MinReadySeconds)...)
	errs = append(errs, valid.NotNegative(path.Child("revisionHistoryLimit"), s.RevisionHistoryLimit)...)
	if p := s.ProgressDeadlineSeconds; p != nil {
		errs = append(errs, valid.NotNegative(path.Child("progressDeadlineSeconds"), p)...)
		if *p <= s.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
		}
	}
	if old != nil {
		errs = append(errs, valid.Immutable(path.Child("selector"), s.Selector, old.Spec.Selector)...)
	}
	return errs
}

// validateRolling checks how many Pods a rolling update may take away and add.
func validateRolling(unavailable, surge *intstr.IntOrString, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, v := range map[string]*intstr.IntOrString{"maxUnavailable": unavailable, "maxSurge": surge} {
		if v != nil {
			errs = append(errs, valid.Amount(path.Child(name), *v)...)
		}
	}
	if isZero(unavailable) && isZero(surge) {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	if unavailable != nil {
		if percent, ok := percentage(*unavailable); ok && percent > 100 {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), unavailable, "must not be greater than 100%"))
		}
	}
	return errs
}

func isZero(v *intstr.IntOrString) bool {
	if v == nil {
		return true
	}
	percent, isPercent := percentage(*v)
	return isPercent && percent == 0 || v.Type == intstr.Int && v.IntVal == 0
}

func percentage(v intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, false)
	return n, err == nil
}

func validateReplicaSet(r, old *appsv1.ReplicaSet) field.ErrorList {
	path, s := field.NewPath("spec"), &r.Spec
	errs := valid.NotNegative(path.Child("replicas"), s.Replicas)
	errs = append(errs, valid.NotNegative(path.Child("minReadySeconds"), &s.MinReadySeconds)...)
	errs = append(errs, validateTemplate(s.Selector, &s.Template, path, "empty selector is invalid for deployment")...)
	errs = append(errs, alwaysRestarts(&s.Template, path)...)
	if old != nil {
		errs = append(errs, valid.Immutable(path.Child("selector"), s.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateStatefulSet(set, old *appsv1.StatefulSet) field.ErrorList {
	path, s := field.NewPath("spec"), &set.Spec
	errs := valid.NotNegative(path.Child("replicas"), s.Replicas)
	errs = append(errs, validateTemplate(s.Selector, &s.Template, path, "empty selector is invalid for statefulset")...)
	errs = append(errs, alwaysRestarts(&s.Template, path)...)
	errs = append(errs, valid.OneOf(path.Child("podManagementPolicy"), s.PodManagementPolicy, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	errs = append(errs, valid.OneOf(path.Child("updateStrategy", "type"), s.UpdateStrategy.Type, appsv1.OnDeleteStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType)...)
	if old == nil {
		return errs
	}
	rest := s.DeepCopy()
	rest.Replicas, rest.Template, rest.UpdateStrategy = old.Spec.Replicas, old.Spec.Template, old.Spec.UpdateStrategy
	rest.MinReadySeconds, rest.Ordinals, rest.RevisionHistoryLimit = old.Spec.MinReadySeconds, old.Spec.Ordinals, old.Spec.RevisionHistoryLimit
	rest.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(*rest, old.Spec) {
		errs = append(errs, field.Forbidden(path, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "+
			"'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
	}
	return errs
}

func validateDaemonSet(d, old *appsv1.DaemonSet) field.ErrorList {
	path, s := field.NewPath("spec"), &d.Spec
	errs := validateTemplate(s.Selector, &s.Template, path, "empty selector is invalid for daemonset")
	errs = append(errs, alwaysRestarts(&s.Template, path)...)
	errs = append(errs, valid.NotNegative(path.Child("minReadySeconds"), &s.MinReadySeconds)...)
	errs = append(errs, valid.OneOf(path.Child("updateStrategy", "type"), s.UpdateStrategy.Type, appsv1.OnDeleteDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType)...)
	if old != nil {
		errs = append(errs, valid.Immutable(path.Child("selector"), s.Selector, old.Spec.Selector)...)
	}
	return errs
}

func validateControllerRevision(r, old *appsv1.ControllerRevision) field.ErrorList {
	var errs field.ErrorList
	if r.Revision < 0 {
		errs = append(errs, valid.NotNegative(field.NewPath("revision"), &r.Revision)...)
	}
	if old != nil {
		errs = append(errs, valid.Immutable(field.NewPath("data"), r.Data, old.Data)...)
	}
	return errs
}

func validateJob(j, old *batchv1.Job) field.ErrorList {
	path, s := field.NewPath("spec"), &j.Spec
	errs := validateJobSpec(s, path)
	if old == nil {
		return errs
	}
	if kind.Value(old.Spec.CompletionMode) != batchv1.IndexedCompletion {
		errs = append(errs, valid.Immutable(path.Child("completions"), s.Completions, old.Spec.Completions)...)
	}
	errs = append(errs, valid.Immutable(path.Child("selector"), s.Selector, old.Spec.Selector)...)
	if !kind.Value(old.Spec.Suspend) || old.Status.StartTime != nil { // before it starts, scheduling may be adjusted
		errs = append(errs, valid.Immutable(path.Child("template"), s.Template, old.Spec.Template)...)
	}
	errs = append(errs, valid.Immutable(path.Child("completionMode"), s.CompletionMode, old.Spec.CompletionMode)...)
	errs = append(errs, valid.Immutable(path.Child("podFailurePolicy"), s.PodFailurePolicy, old.Spec.PodFailurePolicy)...)
	return append(errs, valid.Immutable(path.Child("backoffLimitPerIndex"), s.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex)...)
}

func validateJobSpec(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := valid.NotNegative(path.Child("parallelism"), s.Parallelism)
	errs = append(errs, valid.NotNegative(path.Child("completions"), s.Completions)...)
	errs = append(errs, valid.NotNegative(path.Child("activeDeadlineSeconds"), s.ActiveDeadlineSeconds)...)
	errs = append(errs, valid.NotNegative(path.Child("backoffLimit"), s.BackoffLimit)...)
	errs = append(errs, valid.NotNegative(path.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished)...)
	if s.CompletionMode != nil {
		errs = append(errs, valid.OneOf(path.Child("completionMode"), *s.CompletionMode, batchv1.IndexedCompletion, batchv1.NonIndexedCompletion)...)
	}
	errs = append(errs, pod.ValidateTemplate(&s.Template, path.Child("template"))...)
	if p := s.Template.Spec.RestartPolicy; p != corev1.RestartPolicyNever && p != corev1.RestartPolicyOnFailure {
		at := path.Child("template", "spec", "restartPolicy")
		if p == "" || p == corev1.RestartPolicyAlways {
			errs = append(errs, field.Required(at, `valid values: "OnFailure", "Never"`))
		} else {
			errs = append(errs, valid.OneOf(at, p, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)...)
		}
	}
	return errs
}

func validateCronJob(c, _ *batchv1.CronJob) field.ErrorList {
	path, s := field.NewPath("spec"), &c.Spec
	var errs field.ErrorList
	if s.Schedule == "" {
		errs = append(errs, field.Required(path.Child("schedule"), ""))
	} else if _, err := cron.ParseStandard(s.Schedule); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), s.Schedule, err.Error()))
	}
	errs = append(errs, valid.NotNegative(path.Child("startingDeadlineSeconds"), s.StartingDeadlineSeconds)...)
	errs = append(errs, valid.OneOf(path.Child("concurrencyPolicy"), s.ConcurrencyPolicy,
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, valid.NotNegative(path.Child("successfulJobsHistoryLimit"), s.SuccessfulJobsHistoryLimit)...)
	errs = append(errs, valid.NotNegative(path.Child("failedJobsHistoryLimit"), s.FailedJobsHistoryLimit)...)
	if len(c.Name) > validation.DNS1035LabelMaxLength-11 { // the Jobs are named after it
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	return append(errs, validateJobSpec(&s.JobTemplate.Spec, path.Child("jobTemplate", "spec"))...)
}
