// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package autoscaling serves HorizontalPodAutoscalers.
package autoscaling

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Resources returns autoscalers, kept as autoscaling/v2, which has fields for what
// autoscaling/v1 says in annotations.
func Resources() []*resource.Resource {
	const group, plural = "autoscaling", "horizontalpodautoscalers"
	family := kind.NewFamily()
	columns := func() []metav1.TableColumnDefinition {
		return kind.Columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age")
	}
	preferred := kind.Definition[autoscalingv2.HorizontalPodAutoscaler, scaler]{
		Group: group, Version: "v2", Plural: plural, Short: []string{"hpa"}, Categories: []string{"all"},
		Family: family, Others: []string{"v1"}, Convert: convertScaler,
		Status: true, Generations: true, Unconditional: true,
		Defaults: defaultAutoscaler,
		Validate: validateAutoscaler, ValidateStatus: validateAutoscalerStatus,
		Columns: columns(),
		Row:     scalerRow,
	}
	old := kind.Definition[autoscalingv1.HorizontalPodAutoscaler, oldScaler]{
		Group: group, Version: "v1", Plural: plural,
		Family: family, Others: []string{"v2"}, Convert: convertScaler,
		Status: true, Generations: true,
		Defaults: normalOldScaler,
		// Some annotations are parts of the status, the others of the spec.
		Prepare: func(_ context.Context, a, before oldScaler) {
			keepAnnotations(a, before, conditionsAnnotation, currentAnnotation)
		},
		PrepareStatus: func(_ context.Context, a, before oldScaler) {
			keepAnnotations(a, before, metricsAnnotation, behaviorAnnotation)
		},
		Validate: oldRules(validateAutoscaler), ValidateStatus: oldRules(validateAutoscalerStatus),
		Columns: columns(),
		Row:     func(a oldScaler) []any { return scalerRow(toScaler(a)) },
	}
	return []*resource.Resource{kind.Joined(preferred.Resource(), old.Resource(), convertScaler)}
}

func scalerRow(a scaler) []any {
	least := "<unset>"
	if a.Spec.MinReplicas != nil {
		least = strconv.Itoa(int(*a.Spec.MinReplicas))
	}
	return []any{
		a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name, targetsText(a), least,
		int64(a.Spec.MaxReplicas), int64(a.Status.CurrentReplicas), kind.Age(a),
	}
}

func defaultAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) {
	kind.Fill(&a.Spec.MinReplicas, int32(1))
	if len(a.Spec.Metrics) == 0 {
		utilisation := int32(80)
		a.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilisation},
			},
		}}
	}
	b := a.Spec.Behavior
	if b == nil {
		return
	}
	if b.ScaleUp == nil {
		b.ScaleUp = new(autoscalingv2.HPAScalingRules)
	}
	if b.ScaleDown == nil {
		b.ScaleDown = new(autoscalingv2.HPAScalingRules)
	}
	up, down := b.ScaleUp, b.ScaleDown
	kind.Fill(&up.StabilizationWindowSeconds, int32(0))
	kind.Fill(&up.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if up.Policies == nil {
		up.Policies = []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
		}
	}
	kind.Fill(&down.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if down.Policies == nil {
		down.Policies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}}
	}
}

// targetsText shows current and wanted values of the metrics.
func targetsText(a *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(a.Spec.Metrics) == 0 {
		return kind.None
	}
	var list []string
	for i, m := range a.Spec.Metrics {
		var current *autoscalingv2.MetricStatus
		if i < len(a.Status.CurrentMetrics) {
			current = &a.Status.CurrentMetrics[i]
		}
		list = append(list, targetText(m, current))
	}
	if len(list) > maxTargets {
		return strings.Join(list[:maxTargets], ", ") + fmt.Sprintf(" + %d more...", len(list)-maxTargets)
	}
	return strings.Join(list, ", ")
}

// maxTargets is how many metrics a cell shows.
const maxTargets = 2

func targetText(m autoscalingv2.MetricSpec, current *autoscalingv2.MetricStatus) string {
	var label string
	var target autoscalingv2.MetricTarget
	var now *autoscalingv2.MetricValueStatus
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		label, target = string(m.Resource.Name)+": ", m.Resource.Target
		if current != nil && current.Resource != nil {
			now = &current.Resource.Current
		}
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		label, target = string(m.ContainerResource.Name)+": ", m.ContainerResource.Target
		if current != nil && current.ContainerResource != nil {
			now = &current.ContainerResource.Current
		}
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		target = m.Pods.Target
		if current != nil && current.Pods != nil {
			now = &current.Pods.Current
		}
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		target = m.Object.Target
		if current != nil && current.Object != nil {
			now = &current.Object.Current
		}
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		target = m.External.Target
		if current != nil && current.External != nil {
			now = &current.External.Current
		}
	default:
		return "<unknown type>"
	}
	have, want := "<unknown>", "<auto>"
	switch {
	case target.AverageValue != nil:
		want = target.AverageValue.String()
		if now != nil && now.AverageValue != nil {
			have = now.AverageValue.String()
		}
		if m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType {
			want += " (avg)"
		}
	case target.AverageUtilization != nil:
		want = fmt.Sprintf("%d%%", *target.AverageUtilization)
		if now != nil && now.AverageUtilization != nil {
			have = fmt.Sprintf("%d%%", *now.AverageUtilization)
		}
	case target.Value != nil:
		want = target.Value.String()
		if now != nil && now.Value != nil {
			have = now.Value.String()
		}
	}
	return label + have + "/" + want
}
