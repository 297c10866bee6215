// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/controlplane/internal/step"
)

// verdict is a status in which conditions are set.
type verdict struct {
	*autoscalingv2.HorizontalPodAutoscalerStatus
	now time.Time
}

func (v verdict) set(kind autoscalingv2.HorizontalPodAutoscalerConditionType, holds bool, reason, message string) {
	c := autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: "False", Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(v.now)}
	if holds {
		c.Status = "True"
	}
	for i := range v.Conditions {
		if is := &v.Conditions[i]; is.Type == kind {
			if is.Status == c.Status {
				c.LastTransitionTime = is.LastTransitionTime
			}
			*is = c
			return
		}
	}
	v.Conditions = append(v.Conditions, c)
}

// numbers returns the status with new numbers.
func (v verdict) numbers(current, desired int32, metrics []autoscalingv2.MetricStatus) autoscalingv2.HorizontalPodAutoscalerStatus {
	return autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: v.ObservedGeneration, LastScaleTime: v.LastScaleTime, CurrentReplicas: current, DesiredReplicas: desired, CurrentMetrics: metrics, Conditions: v.Conditions,
	}
}

// measurement is what the metrics of an autoscaler call for together.
type measurement struct {
	replicas int32
	name     string // of the metric that calls for them
	statuses []autoscalingv2.MetricStatus
	failed   error // nothing can be concluded
}

// proposal is what one metric calls for.
type proposal struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
	// reason and err are those of the condition and of an Event; wrapped is err in others.
	reason       string
	err, wrapped error
}

// measure returns what the metrics that were read call for, and sets the condition
// ScalingActive. Where some cannot be read, the others decide, but not for fewer replicas.
func (l *look) measure(v verdict, t target, selector labels.Selector) measurement {
	metrics := l.scaler.pass.metrics
	c := &calculation{
		current: t.replicas, pods: podsOf(l.view, l.object.Namespace, selector), tolerances: tolerancesOf(l.object.Spec.Behavior), now: l.now,
	}
	out := measurement{statuses: make([]autoscalingv2.MetricStatus, len(metrics))}
	var first *proposal
	failed := 0
	for i := range metrics {
		p := c.propose(l.object.Namespace, &metrics[i], l.scaler.pass.readings[i], t.running)
		if p.err != nil {
			l.warn(p.reason, p.err.Error())
			if failed++; first == nil {
				first = &p
			}
			continue
		}
		out.statuses[i] = p.status
		if out.replicas == 0 || p.replicas > out.replicas {
			out.replicas, out.name = p.replicas, p.name
		}
	}
	if failed == len(metrics) || failed > 0 && out.replicas < t.replicas {
		v.set(autoscalingv2.ScalingActive, false, first.reason, "the HPA was unable to compute the replica count: "+first.err.Error())
		out.failed = fmt.Errorf("invalid metrics (%d invalid out of %d), first error is: %w", failed, len(metrics), first.wrapped)
		return out
	}
	v.set(autoscalingv2.ScalingActive, true, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from "+out.name)
	return out
}

// propose returns what one metric calls for. running is how many replicas the target has.
func (c *calculation) propose(namespace string, m *autoscalingv2.MetricSpec, r reading, running int32) proposal {
	r.pods = maps.Clone(r.pods) // which may be read again, after a conflict
	p := proposal{status: autoscalingv2.MetricStatus{Type: m.Type}}
	switch {
	case m.Resource != nil:
		p.reason = "FailedGetResourceMetric"
		var is autoscalingv2.MetricValueStatus
		is, p.err = c.ofResource(&p, m.Resource.Name, "", m.Resource.Target, r)
		p.status.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name, Current: is}
		p.wrapped = fmt.Errorf("failed to get %s resource metric value: %w", m.Resource.Name, p.err)
	case m.ContainerResource != nil:
		p.reason = "FailedGetContainerResourceMetric"
		s := m.ContainerResource
		var is autoscalingv2.MetricValueStatus
		is, p.err = c.ofResource(&p, s.Name, s.Container, s.Target, r)
		p.status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: s.Name, Container: s.Container, Current: is}
		p.wrapped = fmt.Errorf("failed to get %s container metric value: %w", s.Container, p.err)
	case m.Pods != nil:
		p.reason, p.name = "FailedGetPodsMetric", "pods metric "+m.Pods.Metric.Name
		var use average
		if p.err = r.err; p.err != nil {
			p.err = fmt.Errorf("unable to get metric %s: %w", m.Pods.Metric.Name, p.err)
		} else {
			p.replicas, use, p.err = c.plain(r.pods, "", m.Pods.Target.AverageValue.MilliValue())
		}
		p.status.Pods = &autoscalingv2.PodsMetricStatus{Metric: m.Pods.Metric, Current: autoscalingv2.MetricValueStatus{AverageValue: milli(use.value)}}
		p.wrapped = fmt.Errorf("failed to get pods metric value: %w", p.err)
	case m.Object != nil:
		p.reason = "FailedGetObjectMetric"
		c.ofObject(&p, namespace, m.Object, r, running)
	case m.External != nil:
		p.reason = "FailedGetExternalMetric"
		c.ofExternal(&p, namespace, m.External, r, running)
	default:
		p.reason, p.err = "InvalidMetricSourceType", fmt.Errorf("unknown metric source type %q", m.Type)
		p.wrapped = p.err
	}
	return p
}

// ofResource computes the replicas for the use of a resource by Pods, or by one container of
// each.
func (c *calculation) ofResource(p *proposal, name corev1.ResourceName, container string, target autoscalingv2.MetricTarget, r reading) (is autoscalingv2.MetricValueStatus, err error) {
	if r.err != nil {
		r.err = fmt.Errorf("unable to get metrics for resource %s: %w", name, r.err)
	}
	var use average
	switch {
	case target.AverageValue != nil:
		p.name = string(name) + " resource"
		if err = r.err; err == nil {
			p.replicas, use, err = c.plain(r.pods, name, target.AverageValue.MilliValue())
		}
		if err != nil {
			return is, fmt.Errorf("failed to get %s usage: %w", name, err)
		}
	case target.AverageUtilization != nil:
		p.name = string(name) + " resource utilization (percentage of request)"
		if container != "" {
			p.name = string(name) + " container resource utilization (percentage of request)"
		}
		if err = r.err; err == nil {
			p.replicas, use, err = c.utilization(r.pods, name, container, *target.AverageUtilization)
		}
		if err != nil {
			return is, fmt.Errorf("failed to get %s utilization: %w", name, err)
		}
		is.AverageUtilization = &use.percent
	default:
		return is, errors.New("invalid resource metric source: neither an average utilization target nor an average value target was set")
	}
	is.AverageValue = milli(use.value)
	if name == corev1.ResourceMemory {
		is.AverageValue.Format = resource.BinarySI
	}
	return is, nil
}

// ofObject computes the replicas for a metric that describes an object.
func (c *calculation) ofObject(p *proposal, namespace string, m *autoscalingv2.ObjectMetricSource, r reading, running int32) {
	about, target := m.DescribedObject, m.Target
	is := autoscalingv2.MetricValueStatus{}
	p.err = r.err
	if p.err != nil {
		p.err = fmt.Errorf("unable to get metric %s on %s %s/%s: %w", m.Metric.Name, about.Kind, namespace, about.Name, p.err)
	}
	wrapped := "%w"
	switch {
	case target.Type == autoscalingv2.ValueMetricType && target.Value != nil:
		p.name = about.Kind + " metric " + m.Metric.Name
		if p.err == nil {
			is.Value = milli(r.values[0])
			p.replicas, p.err = c.whole(r.values[0], target.Value.MilliValue())
		}
	case target.Type == autoscalingv2.AverageValueMetricType && target.AverageValue != nil:
		p.name = fmt.Sprintf("external metric %s(%s)", m.Metric.Name, selectorText(m.Metric.Selector)) // as the controller of a cluster says
		wrapped = "failed to get " + m.Metric.Name + " object metric: %w"
		if p.err == nil {
			var each int64
			p.replicas, each = c.shared(r.values[0], target.AverageValue.MilliValue(), running)
			is.AverageValue = milli(each)
		}
	default:
		p.err = errors.New("invalid object metric source: neither a value target nor an average value target was set")
	}
	p.status.Object = &autoscalingv2.ObjectMetricStatus{DescribedObject: about, Metric: m.Metric, Current: is}
	p.wrapped = fmt.Errorf("failed to get object metric value: "+wrapped, p.err)
}

// ofExternal computes the replicas for a metric that describes nothing in the cluster.
func (c *calculation) ofExternal(p *proposal, namespace string, m *autoscalingv2.ExternalMetricSource, r reading, running int32) {
	is := autoscalingv2.MetricValueStatus{}
	selector := selectorText(m.Metric.Selector)
	p.err = r.err
	if p.err != nil {
		p.err = fmt.Errorf("unable to get external metric %s/%s/%s: %w", namespace, m.Metric.Name, selector, p.err)
	}
	wrapped := "%w"
	p.name = fmt.Sprintf("external metric %s(%s)", m.Metric.Name, selector)
	switch {
	case m.Target.AverageValue != nil:
		wrapped = "failed to get " + m.Metric.Name + " external metric: %w"
		if p.err == nil {
			var each int64
			p.replicas, each = c.shared(sum(r.values), m.Target.AverageValue.MilliValue(), running)
			is.AverageValue = milli(each)
		}
	case m.Target.Value != nil:
		wrapped = "failed to get external metric " + m.Metric.Name + ": %w"
		if p.err == nil {
			is.Value = milli(sum(r.values))
			p.replicas, p.err = c.whole(sum(r.values), m.Target.Value.MilliValue())
		}
	default:
		p.err = errors.New("invalid external metric source: neither a value target nor an average value target was set")
	}
	p.status.External = &autoscalingv2.ExternalMetricStatus{Metric: m.Metric, Current: is}
	p.wrapped = fmt.Errorf("failed to get %s external metric value: "+wrapped, m.Metric.Name, p.err)
}

func milli(value int64) *resource.Quantity {
	return resource.NewMilliQuantity(value, resource.DecimalSI)
}

// selectorText is a selector in messages.
func selectorText(s *metav1.LabelSelector) string {
	if s == nil {
		return "nil"
	}
	return s.String()
}

// scalerName is the name of an autoscaler in messages about several.
type scalerName struct{ Name, Namespace string }

// scalersOf returns the autoscalers whose targets' selectors select one of the Pods.
func (c *Controller) scalersOf(pods []*corev1.Pod, namespace string) []scalerName {
	var out []scalerName
	for key, s := range c.known {
		in, name := step.SplitName(key.Name)
		if in != namespace || s.selector == nil {
			continue
		}
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return s.selector.Matches(labels.Set(p.Labels)) }) {
			out = append(out, scalerName{name, in})
		}
	}
	slices.SortFunc(out, func(a, b scalerName) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
