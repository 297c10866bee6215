// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/core/volume"
)

func templateChanged(a, b *corev1.PodTemplateSpec) bool { return !equality.Semantic.DeepEqual(a, b) }

const mismatch = "`selector` does not match template `labels`"

// checkSelector has the rules of which Pods are a workload's own. It returns nil
// for a selector that is none.
func checkSelector(f *valid.Field, selector *metav1.LabelSelector, empty, none string) labels.Selector {
	if selector == nil {
		f.Required("selector", "")
	} else {
		f.Selector("selector", selector)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			f.Invalid("selector", selector, empty)
		}
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		f.Invalid("selector", selector, none)
		return nil
	}
	return s
}

// checkTemplate has the rules of the Pods of a workload that runs for ever.
func checkTemplate(f *valid.Field, s labels.Selector, t *corev1.PodTemplateSpec, of string) {
	at := f.Child("template")
	if s != nil && !s.Empty() && !s.Matches(labels.Set(t.Labels)) {
		metadata := at.Child("metadata")
		metadata.Invalid("labels", t.Labels, mismatch)
	}
	podspec.CheckTemplate(&at, t)
	alwaysRestarts(&at, t)
	noDeadline(&at, t, of)
}

// alwaysRestarts checks the policy of workloads that run for ever.
func alwaysRestarts(f *valid.Field, t *corev1.PodTemplateSpec) {
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		spec := f.Child("spec")
		valid.NotSupported(&spec, "restartPolicy", t.Spec.RestartPolicy, corev1.RestartPolicyAlways)
	}
}

func noDeadline(f *valid.Field, t *corev1.PodTemplateSpec, of string) {
	if t.Spec.ActiveDeadlineSeconds != nil {
		spec := f.Child("spec")
		spec.Forbidden("activeDeadlineSeconds", "activeDeadlineSeconds in "+of+" is not Supported")
	}
}

func notNegative[N int32 | int64](f *valid.Field, name string, n *N) {
	if n != nil {
		f.NotNegative(name, int64(*n))
	}
}

func validateDeployment(d, old *appsv1.Deployment) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &d.Spec
	f := root.Child("spec")
	notNegative(&f, "replicas", s.Replicas)
	if selector := checkSelector(&f, s.Selector, "empty selector is invalid for deployment", "invalid label selector"); selector != nil {
		checkTemplate(&f, selector, &s.Template, "ReplicaSet")
	}
	switch at := f.Child("strategy"); s.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.Strategy.RollingUpdate != nil {
			at.Forbidden("rollingUpdate", "may not be specified when strategy `type` is '"+string(appsv1.RecreateDeploymentStrategyType)+"'")
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		rolling := at.Child("rollingUpdate")
		checkRolling(&rolling, s.Strategy.RollingUpdate)
	default:
		at.Add(field.NotSupported(at.Path(), valid.Untagged(s.Strategy), []string{"Recreate", "RollingUpdate"}))
	}
	f.NotNegative("minReadySeconds", int64(s.MinReadySeconds))
	notNegative(&f, "revisionHistoryLimit", s.RevisionHistoryLimit)
	if p := s.ProgressDeadlineSeconds; p != nil {
		f.NotNegative("progressDeadlineSeconds", int64(*p))
		if *p <= s.MinReadySeconds {
			f.Invalid("progressDeadlineSeconds", *p, "must be greater than minReadySeconds")
		}
	}
	if old != nil {
		f.Unchanged("selector", s.Selector, old.Spec.Selector)
	}
	return errs
}

// checkRolling has the rules of how many Pods a rolling update may take away and
// add.
func checkRolling(f *valid.Field, r *appsv1.RollingUpdateDeployment) {
	unavailable, surge := kind.Value(r.MaxUnavailable), kind.Value(r.MaxSurge)
	f.Amount("maxUnavailable", unavailable)
	f.Amount("maxSurge", surge)
	if isZero(unavailable) && isZero(surge) {
		f.Invalid("maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
	}
	f.AtMost100Percent("maxUnavailable", unavailable)
}

// isZero reports whether an amount is nothing, or not an amount at all.
func isZero(v intstr.IntOrString) bool {
	if percent, ok := valid.Percentage(v); ok {
		return percent == 0
	}
	return v.IntValue() == 0
}

func validateReplicaSet(r, old *appsv1.ReplicaSet) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &r.Spec
	f := root.Child("spec")
	notNegative(&f, "replicas", s.Replicas)
	f.NotNegative("minReadySeconds", int64(s.MinReadySeconds))
	if selector := checkSelector(&f, s.Selector, "empty selector is invalid for deployment", "invalid label selector"); selector != nil {
		checkTemplate(&f, selector, &s.Template, "ReplicaSet")
	}
	if old != nil {
		f.Unchanged("selector", s.Selector, old.Spec.Selector)
	}
	return errs
}

func validateReplicationController(r, _ *corev1.ReplicationController) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &r.Spec
	f := root.Child("spec")
	if len(s.Selector) == 0 {
		f.Required("selector", "")
	}
	if s.Template == nil {
		f.Required("template", "")
		return errs
	}
	at := f.Child("template")
	if selector := labels.Set(s.Selector).AsSelectorPreValidated(); !selector.Empty() && !selector.Matches(labels.Set(s.Template.Labels)) {
		metadata := at.Child("metadata")
		metadata.Invalid("labels", s.Template.Labels, mismatch)
	}
	podspec.CheckTemplate(&at, s.Template)
	alwaysRestarts(&at, s.Template)
	noDeadline(&at, s.Template, "ReplicationController")
	return errs
}

func validateStatefulSet(set, old *appsv1.StatefulSet) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &set.Spec
	f := root.Child("spec")
	checkStatefulSet(&f, s, old == nil)
	if old == nil {
		return errs
	}
	f.Unchanged("selector", s.Selector, old.Spec.Selector)
	f.Unchanged("volumeClaimTemplates", s.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates)
	f.Unchanged("serviceName", s.ServiceName, old.Spec.ServiceName)
	f.Unchanged("podManagementPolicy", s.PodManagementPolicy, old.Spec.PodManagementPolicy)
	return errs
}

func checkStatefulSet(f *valid.Field, s *appsv1.StatefulSetSpec, isNew bool) {
	const either = "must be '%s' or '%s'"
	switch s.PodManagementPolicy {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		f.Invalid("podManagementPolicy", s.PodManagementPolicy, fmt.Sprintf(either, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement))
	}
	strategy := f.Child("updateStrategy")
	switch r := s.UpdateStrategy.RollingUpdate; s.UpdateStrategy.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if r != nil {
			strategy.Invalid("rollingUpdate", valid.Untagged(r), fmt.Sprintf("only allowed for updateStrategy '%s'", appsv1.RollingUpdateStatefulSetStrategyType))
		}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if r != nil {
			at := strategy.Child("rollingUpdate")
			notNegative(&at, "partition", r.Partition)
			if r.MaxUnavailable != nil {
				at.Amount("maxUnavailable", *r.MaxUnavailable)
				if isZero(*r.MaxUnavailable) {
					at.Invalid("maxUnavailable", *r.MaxUnavailable, "cannot be 0")
				}
				at.AtMost100Percent("maxUnavailable", *r.MaxUnavailable)
			}
		}
	default:
		strategy.Invalid(valid.Self, valid.Untagged(s.UpdateStrategy), fmt.Sprintf(either, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType))
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		at := f.Child("persistentVolumeClaimRetentionPolicy")
		for name, policy := range map[string]appsv1.PersistentVolumeClaimRetentionPolicyType{"whenDeleted": p.WhenDeleted, "whenScaled": p.WhenScaled} {
			valid.Supported(&at, name, policy, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
		}
	}
	if isNew {
		list := f.Child("volumeClaimTemplates")
		for i := range s.VolumeClaimTemplates {
			at := list.Index(i)
			spec := at.Child("spec")
			volume.CheckClaim(&spec, &s.VolumeClaimTemplates[i].Spec)
		}
	}
	notNegative(f, "replicas", s.Replicas)
	f.NotNegative("minReadySeconds", int64(s.MinReadySeconds))
	if s.Ordinals != nil {
		f.NotNegative("ordinals.start", int64(s.Ordinals.Start))
	}
	if isNew && s.ServiceName != "" {
		f.DNSLabel("serviceName", s.ServiceName)
	}
	if selector := checkSelector(f, s.Selector, "empty selector is invalid for statefulset", ""); selector != nil {
		checkStatefulTemplate(f, selector, s)
	}
	at := f.Child("template")
	alwaysRestarts(&at, &s.Template)
	noDeadline(&at, &s.Template, "StatefulSet")
}

// checkStatefulTemplate has the rules of Pods that will have the volumes of the
// claim templates, and names of their own.
func checkStatefulTemplate(f *valid.Field, selector labels.Selector, s *appsv1.StatefulSetSpec) {
	t := &s.Template
	if t.Spec.Subdomain != "" || t.Spec.Hostname != "" || len(s.VolumeClaimTemplates) > 0 {
		t = t.DeepCopy()
		t.Spec.Subdomain, t.Spec.Hostname = "", ""
		var volumes []corev1.Volume
		claimed := map[string]bool{}
		for _, c := range s.VolumeClaimTemplates {
			if !claimed[c.Name] {
				volumes = append(volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name},
				}})
			}
			claimed[c.Name] = true
		}
		for _, v := range t.Spec.Volumes {
			if !claimed[v.Name] {
				volumes = append(volumes, v)
			}
		}
		t.Spec.Volumes = volumes
	}
	at := f.Child("template")
	if !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		metadata := at.Child("metadata")
		metadata.Invalid("labels", t.Labels, mismatch)
	}
	podspec.CheckTemplate(&at, t)
	at.Labels("labels", t.Labels)
	at.Annotations("annotations", t.Annotations)
}

func validateDaemonSet(d, old *appsv1.DaemonSet) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &d.Spec
	f := root.Child("spec")
	if old != nil {
		f.Unchanged("selector", s.Selector, old.Spec.Selector)
	}
	f.Selector("selector", s.Selector)
	at := f.Child("template")
	if selector, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !selector.Matches(labels.Set(s.Template.Labels)) {
		metadata := at.Child("metadata")
		metadata.Invalid("labels", s.Template.Labels, mismatch)
	}
	if s.Selector != nil && len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
		f.Invalid("selector", s.Selector, "empty selector is invalid for daemonset")
	}
	podspec.CheckTemplate(&at, &s.Template)
	alwaysRestarts(&at, &s.Template)
	noDeadline(&at, &s.Template, "DaemonSet")
	f.NotNegative("minReadySeconds", int64(s.MinReadySeconds))
	strategy := f.Child("updateStrategy")
	switch s.UpdateStrategy.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
	case appsv1.RollingUpdateDaemonSetStrategyType:
		rolling := strategy.Child("rollingUpdate")
		checkRollingDaemons(&rolling, s.UpdateStrategy.RollingUpdate)
	default:
		strategy.Add(field.NotSupported(strategy.Path(), valid.Untagged(s.UpdateStrategy), []string{"RollingUpdate", "OnDelete"}))
	}
	notNegative(&f, "revisionHistoryLimit", s.RevisionHistoryLimit)
	return errs
}

func checkRollingDaemons(f *valid.Field, r *appsv1.RollingUpdateDaemonSet) {
	unavailable, surge := kind.Value(r.MaxUnavailable), kind.Value(r.MaxSurge)
	f.Amount("maxUnavailable", unavailable)
	f.Amount("maxSurge", surge)
	f.AtMost100Percent("maxUnavailable", unavailable)
	f.AtMost100Percent("maxSurge", surge)
	switch {
	case !isZero(unavailable) && !isZero(surge):
		f.Invalid("maxSurge", surge, "may not be set when maxUnavailable is non-zero")
	case isZero(unavailable) && isZero(surge):
		f.Required("maxUnavailable", "cannot be 0 when maxSurge is 0")
	}
}

func validateControllerRevision(r, old *appsv1.ControllerRevision) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	f.NotNegative("revision", r.Revision)
	if old != nil {
		f.Unchanged("data", r.Data, old.Data)
		return errs
	}
	var data any
	if r.Data.Raw == nil {
		f.Required("data", "data is mandatory")
	} else if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		f.Invalid("data", "<value omitted>", fmt.Sprintf("error parsing data: %v", err))
	} else if data == nil {
		f.Required("data", "data is mandatory")
	} else if _, isObject := data.(map[string]any); !isObject {
		f.Required("data", "data must be a valid JSON object")
	}
	return errs
}
