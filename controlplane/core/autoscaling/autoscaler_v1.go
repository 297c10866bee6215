// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"fmt"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

type (
	oldScaler = *autoscalingv1.HorizontalPodAutoscaler
	scaler    = *autoscalingv2.HorizontalPodAutoscaler
)

// Annotations by which autoscaling/v1 says what it has no fields for.
const (
	annotationPrefix     = "autoscaling.alpha.kubernetes.io/"
	metricsAnnotation    = annotationPrefix + "metrics"
	behaviorAnnotation   = annotationPrefix + "behavior"
	conditionsAnnotation = annotationPrefix + "conditions"
	currentAnnotation    = annotationPrefix + "current-metrics"
)

// convertScaler returns an autoscaler in a version. It may share memory with its
// argument.
func convertScaler(obj resource.Object, version string) (resource.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		var typed resource.Object = &autoscalingv2.HorizontalPodAutoscaler{}
		if u.GroupVersionKind().Version == "v1" {
			typed = &autoscalingv1.HorizontalPodAutoscaler{}
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
			return nil, fmt.Errorf("convert HorizontalPodAutoscaler %s: %w", u.GetName(), err)
		}
		obj = typed
	}
	switch from := obj.(type) {
	case oldScaler:
		if version == "v2" {
			return toScaler(from), nil
		}
	case scaler:
		if version == "v1" {
			return toOldScaler(from)
		}
	}
	return obj, nil
}

// normalOldScaler sets the defaults of autoscaling/v2 and brings the annotations
// into their usual form; what cannot be read of them is dropped.
func normalOldScaler(a oldScaler) {
	full := toScaler(a.DeepCopy())
	defaultAutoscaler(full)
	if normal, err := toOldScaler(full); err == nil {
		*a = *normal
	}
}

// keepAnnotations gives an object some annotations of another, which may be nil,
// in place of its own.
func keepAnnotations(a, old oldScaler, names ...string) {
	annotations := maps.Clone(a.Annotations)
	for _, name := range names {
		delete(annotations, name)
		if old == nil {
			continue
		}
		if value, ok := old.Annotations[name]; ok {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[name] = value
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	a.Annotations = annotations
}

// oldRules holds autoscalers of autoscaling/v1 to the rules of autoscaling/v2.
func oldRules(rules func(a, old scaler) field.ErrorList) func(a, old oldScaler) field.ErrorList {
	return func(a, old oldScaler) field.ErrorList {
		if old == nil {
			return rules(toScaler(a), nil)
		}
		return rules(toScaler(a), toScaler(old))
	}
}

// toScaler shows an autoscaler of autoscaling/v1 in autoscaling/v2.
func toScaler(a oldScaler) scaler {
	out := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: a.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(a.Spec.ScaleTargetRef),
			MinReplicas:    a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: a.Status.ObservedGeneration, LastScaleTime: a.Status.LastScaleTime,
			CurrentReplicas: a.Status.CurrentReplicas, DesiredReplicas: a.Status.DesiredReplicas,
		},
	}
	var wanted []autoscalingv1.MetricSpec
	if read(a, metricsAnnotation, &wanted) {
		for i := range wanted {
			out.Spec.Metrics = append(out.Spec.Metrics, toMetric(&wanted[i]))
		}
	}
	if n := a.Spec.TargetCPUUtilizationPercentage; n != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: n},
			},
		})
	}
	var behavior autoscalingv2.HorizontalPodAutoscalerBehavior
	if read(a, behaviorAnnotation, &behavior) { // the names differ in case alone
		out.Spec.Behavior = &behavior
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if read(a, conditionsAnnotation, &conditions) {
		for _, c := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
				LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
			})
		}
	}
	var current []autoscalingv1.MetricStatus
	if read(a, currentAnnotation, &current) {
		for i := range current {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, toMetricStatus(&current[i]))
		}
	} else if n := a.Status.CurrentCPUUtilizationPercentage; n != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: n},
			},
		}}
	}
	keep := autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: a.ObjectMeta}
	keepAnnotations(&keep, nil, metricsAnnotation, behaviorAnnotation, conditionsAnnotation, currentAnnotation)
	out.Annotations = keep.Annotations
	return out
}

// read reads an annotation, and reports whether it is there and not empty.
func read[T any](a oldScaler, name string, into *T) bool {
	text, ok := a.Annotations[name]
	return ok && json.Unmarshal([]byte(text), into) == nil
}

// toOldScaler is the reverse of toScaler.
func toOldScaler(a scaler) (oldScaler, error) {
	out := &autoscalingv1.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: a.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(a.Spec.ScaleTargetRef),
			MinReplicas:    a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: a.Status.ObservedGeneration, LastScaleTime: a.Status.LastScaleTime,
			CurrentReplicas: a.Status.CurrentReplicas, DesiredReplicas: a.Status.DesiredReplicas,
		},
	}
	notes := map[string]any{}
	var wanted []autoscalingv1.MetricSpec
	for i := range a.Spec.Metrics {
		m := &a.Spec.Metrics[i]
		if n := cpuTarget(m); n != nil && out.Spec.TargetCPUUtilizationPercentage == nil {
			out.Spec.TargetCPUUtilizationPercentage = n
			continue
		}
		wanted = append(wanted, fromMetric(m))
	}
	if len(wanted) > 0 {
		notes[metricsAnnotation] = wanted
	}
	if b := a.Spec.Behavior; b != nil {
		notes[behaviorAnnotation] = behaviorNote{fromRules(b.ScaleUp), fromRules(b.ScaleDown)}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	for _, c := range a.Status.Conditions {
		conditions = append(conditions, autoscalingv1.HorizontalPodAutoscalerCondition{
			Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	if len(conditions) > 0 {
		notes[conditionsAnnotation] = conditions
	}
	var current []autoscalingv1.MetricStatus
	for i := range a.Status.CurrentMetrics {
		m := &a.Status.CurrentMetrics[i]
		if r := m.Resource; r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
		current = append(current, fromMetricStatus(m))
	}
	if len(current) > 0 {
		notes[currentAnnotation] = current
	}
	if len(notes) == 0 {
		return out, nil
	}
	if out.Annotations = maps.Clone(out.Annotations); out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	for name, value := range notes {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("convert HorizontalPodAutoscaler %s: %w", a.Name, err)
		}
		out.Annotations[name] = string(text)
	}
	return out, nil
}

func cpuTarget(m *autoscalingv2.MetricSpec) *int32 {
	if m.Type != autoscalingv2.ResourceMetricSourceType || m.Resource == nil || m.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return m.Resource.Target.AverageUtilization
}

// behaviorNote and its parts are the behaviour as its annotation has it.
type (
	behaviorNote struct{ ScaleUp, ScaleDown *rulesNote }
	rulesNote    struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []policyNote
		Tolerance                  *quantity.Quantity
	}
	policyNote struct {
		Type                 autoscalingv2.HPAScalingPolicyType
		Value, PeriodSeconds int32
	}
)

func fromRules(r *autoscalingv2.HPAScalingRules) *rulesNote {
	if r == nil {
		return nil
	}
	out := &rulesNote{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, policyNote(p))
	}
	return out
}
