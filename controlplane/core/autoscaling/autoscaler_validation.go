// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateAutoscaler(a, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &a.Spec
	f := root.Child("spec")
	if n := s.MinReplicas; n != nil && s.MaxReplicas < *n {
		f.Invalid("maxReplicas", s.MaxReplicas, "must be greater than or equal to `minReplicas`")
	}
	target, rule := f.Child("scaleTargetRef"), groupRequired
	switch r := &s.ScaleTargetRef; {
	case old != nil && old.Spec.ScaleTargetRef.APIVersion == r.APIVersion && old.Spec.ScaleTargetRef.Kind == r.Kind:
		rule = groupUnchecked
	case r.Kind == "ReplicationController":
		rule = groupOptional
	}
	checkScaled(&target, &s.ScaleTargetRef, rule)
	metrics := f.Child("metrics")
	rule = objectGroups(old)
	for i := range s.Metrics {
		at := metrics.Index(i)
		checkMetric(&at, &s.Metrics[i], rule)
	}
	if n := s.MinReplicas; n != nil && *n == 0 && !slices.ContainsFunc(s.Metrics, isOutside) {
		metrics.Forbidden(valid.Self, "must specify at least one Object or External metric to support scaling to zero replicas")
	}
	if b := s.Behavior; b != nil {
		at := f.Child("behavior")
		checkScaling(&at, "scaleUp", b.ScaleUp)
		checkScaling(&at, "scaleDown", b.ScaleDown)
	}
	return errs
}

// isOutside reports whether a metric is there while there are no Pods.
func isOutside(m autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
}

// groupRule says what the apiVersion of a reference has to be.
type groupRule int

const (
	groupRequired groupRule = iota
	groupOptional
	groupUnchecked // as it was there before
)

// problem of an apiVersion; nil: none.
func (r groupRule) problem(apiVersion string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case r == groupUnchecked:
		return nil
	case err == nil && r == groupRequired && gv.Group == "":
		return fmt.Errorf("apiVersion must specify API group")
	}
	return err
}

// objectGroups is the rule of objects that metrics describe.
func objectGroups(old *autoscalingv2.HorizontalPodAutoscaler) groupRule {
	if old == nil {
		return groupOptional
	}
	for _, m := range old.Spec.Metrics {
		if m.Object != nil && groupOptional.problem(m.Object.DescribedObject.APIVersion) != nil {
			return groupUnchecked
		}
	}
	return groupOptional
}

func checkScaled(f *valid.Field, r *autoscalingv2.CrossVersionObjectReference, rule groupRule) {
	f.PathSegment("kind", r.Kind)
	f.PathSegment("name", r.Name)
	if err := rule.problem(r.APIVersion); err != nil {
		f.Invalid("apiVersion", r.APIVersion, err.Error())
	}
}

// metricSource is one of the fields of which a metric has the one of its type.
type metricSource struct {
	name  string
	of    autoscalingv2.MetricSourceType
	is    bool
	check func(f *valid.Field)
}

// sourcesOf returns the sources there are in the order in which they are looked
// at: of those that are set the first alone is checked.
func sourcesOf(m *autoscalingv2.MetricSpec, objects groupRule) []metricSource {
	return []metricSource{
		{"object", autoscalingv2.ObjectMetricSourceType, m.Object != nil, func(f *valid.Field) {
			described := f.Child("describedObject")
			checkScaled(&described, &m.Object.DescribedObject, objects)
			checkMeasured(f, &m.Object.Metric, &m.Object.Target)
			if t := &m.Object.Target; t.Value == nil && t.AverageValue == nil {
				requireTarget(f, "averageValue", "must set either a target value or averageValue")
			}
		}},
		{"external", autoscalingv2.ExternalMetricSourceType, m.External != nil, func(f *valid.Field) {
			checkMeasured(f, &m.External.Metric, &m.External.Target)
			switch t := &m.External.Target; {
			case t.Value == nil && t.AverageValue == nil:
				requireTarget(f, "averageValue", "must set either a target value for metric or a per-pod target")
			case t.Value != nil && t.AverageValue != nil:
				target := f.Child("target")
				target.Forbidden("value", "may not set both a target value for metric and a per-pod target")
			}
		}},
		{"pods", autoscalingv2.PodsMetricSourceType, m.Pods != nil, func(f *valid.Field) {
			checkMeasured(f, &m.Pods.Metric, &m.Pods.Target)
			if m.Pods.Target.AverageValue == nil {
				requireTarget(f, "averageValue", "must specify a positive target averageValue")
			}
		}},
		{"resource", autoscalingv2.ResourceMetricSourceType, m.Resource != nil, func(f *valid.Field) {
			if m.Resource.Name == "" {
				f.Required("name", "must specify a resource name")
			}
			checkUtilisation(f, &m.Resource.Target)
		}},
		{"containerResource", autoscalingv2.ContainerResourceMetricSourceType, m.ContainerResource != nil, func(f *valid.Field) {
			if m.ContainerResource.Name == "" {
				f.Required("name", "must specify a resource name")
			} else {
				at := f.Child("name")
				podspec.CheckContainerResource(&at, string(m.ContainerResource.Name))
			}
			if m.ContainerResource.Container == "" {
				f.Required("container", "must specify a container")
			} else {
				f.DNSLabel("container", m.ContainerResource.Container)
			}
			checkUtilisation(f, &m.ContainerResource.Target)
		}},
	}
}

func requireTarget(f *valid.Field, name, detail string) {
	target := f.Child("target")
	target.Required(name, detail)
}

func checkMetric(f *valid.Field, m *autoscalingv2.MetricSpec, objects groupRule) {
	if m.Type == "" {
		f.Required("type", "must specify a metric source type")
	}
	sources := sourcesOf(m, objects)
	known := slices.IndexFunc(sources, func(s metricSource) bool { return s.of == m.Type })
	unknown := func() {
		if known < 0 {
			valid.NotSupported(f, "type", m.Type,
				autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
				autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType)
		}
	}
	unknown()
	var set []metricSource
	for _, s := range sources {
		if s.is {
			set = append(set, s)
		}
	}
	if len(set) > 0 {
		at := f.Child(set[0].name)
		set[0].check(&at)
	}
	unknown() // is said twice
	if known >= 0 && !sources[known].is {
		f.Required(sources[known].name, "must populate information for the given metric source")
	}
	if len(set) == 1 {
		return
	}
	for _, s := range set {
		if s.of != m.Type {
			f.Forbidden(s.name, "must populate the given metric source only")
		}
	}
}

// checkMeasured has the rules of metrics by name.
func checkMeasured(f *valid.Field, id *autoscalingv2.MetricIdentifier, t *autoscalingv2.MetricTarget) {
	metric := f.Child("metric")
	if id.Name == "" {
		metric.Required("name", "must specify a metric name")
	} else {
		metric.PathSegment("name", id.Name)
	}
	checkTarget(f, t)
}

// checkUtilisation has the rules of the targets of resources.
func checkUtilisation(f *valid.Field, t *autoscalingv2.MetricTarget) {
	checkTarget(f, t)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		requireTarget(f, "averageUtilization", "must set either a target raw value or a target utilization")
	case t.AverageUtilization != nil && t.AverageValue != nil:
		target := f.Child("target")
		target.Forbidden("averageValue", "may not set both a target raw value and a target utilization")
	}
}

func checkTarget(in *valid.Field, t *autoscalingv2.MetricTarget) {
	f := in.Child("target")
	if t.Type == "" {
		f.Required("type", "must specify a metric target type")
	}
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		f.Invalid("type", t.Type, "must be either Utilization, Value, or AverageValue")
	}
	positive := func(name string, q *resource.Quantity) {
		if q != nil && q.Sign() <= 0 {
			f.Invalid(name, q, "must be positive")
		}
	}
	positive("value", t.Value)
	positive("averageValue", t.AverageValue)
	if n := t.AverageUtilization; n != nil && *n < 1 {
		f.Invalid("averageUtilization", *n, "must be greater than 0")
	}
}

// checkScaling has the rules of how fast Pods come or go.
func checkScaling(in *valid.Field, name string, r *autoscalingv2.HPAScalingRules) {
	const longestWindow, longestPeriod = 3600, 1800 // seconds
	if r == nil {
		return
	}
	f := in.Child(name)
	switch n := kind.Value(r.StabilizationWindowSeconds); {
	case n < 0:
		f.Invalid("stabilizationWindowSeconds", n, "must be greater than or equal to zero")
	case n > longestWindow:
		f.Invalid("stabilizationWindowSeconds", n, fmt.Sprintf("must be less than or equal to %d", longestWindow))
	}
	if p := r.SelectPolicy; p != nil {
		valid.Supported(&f, "selectPolicy", *p,
			autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)
	}
	list := f.Child("policies")
	if len(r.Policies) == 0 {
		list.Required(valid.Self, "must specify at least one Policy")
	}
	for i, p := range r.Policies {
		at := list.Index(i)
		valid.Supported(&at, "type", p.Type, autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)
		if p.Value <= 0 {
			at.Invalid("value", p.Value, "must be greater than zero")
		}
		switch n := p.PeriodSeconds; {
		case n <= 0:
			at.Invalid("periodSeconds", n, "must be greater than zero")
		case n > longestPeriod:
			at.Invalid("periodSeconds", n, fmt.Sprintf("must be less than or equal to %d", longestPeriod))
		}
	}
	if r.Tolerance != nil {
		f.Quantity("tolerance", "", *r.Tolerance)
	}
}

func validateAutoscalerStatus(a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("status")
	f.NotNegative("currentReplicas", int64(a.Status.CurrentReplicas))
	f.NotNegative("desiredReplicas", int64(a.Status.DesiredReplicas))
	return errs
}
