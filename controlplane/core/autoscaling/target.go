// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// target is what an autoscaler scales.
type target struct {
	resource step.Resource
	rec      *storage.Record
	replicas int32
	// selects reports whether it says which Pods are its own.
	selects bool
}

// find returns the target of an autoscaler, or else why there is none, and follows it.
func (c *Controller) find(view storage.View, key storage.Key, obj *autoscalingv2.HorizontalPodAutoscaler) (t target, why string) {
	ref := &obj.Spec.ScaleTargetRef
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
	r, ok := c.catalog.Kind(ref.APIVersion, ref.Kind)
	if !ok { // in that version
		for other := range c.catalog.Resources() {
			if other.Group == group && other.Kind == ref.Kind {
				r, ok = other, true
			}
		}
	}
	if !ok {
		c.follow(key, storage.Key{})
		c.lost.Add(key)
		return t, fmt.Sprintf("no matches for kind %q in group %q", ref.Kind, group)
	}
	delete(c.lost, key)
	at := r.Key(obj.Namespace, ref.Name)
	c.follow(key, at)
	replicas, selector, ok := paths(view, r)
	if !ok {
		return t, "the server could not find the requested resource"
	}
	if t.rec = view.Get(at); t.rec == nil {
		return t, fmt.Sprintf("%s %q not found", r.GroupResource(), ref.Name)
	}
	n, _ := strconv.ParseInt(string(member(t.rec.Value, replicas)), 10, 32) // 0 if nothing is said
	t.resource, t.replicas, t.selects = r, int32(n), len(member(t.rec.Value, selector)) > len(`""`)
	return t, ""
}

// paths returns where objects of a resource say how many replicas there should be, and which
// Pods are theirs; empty if they do not.
func paths(view storage.View, r step.Resource) (replicas, selector string, ok bool) {
	if r.Group == "apps" && slices.Contains([]string{"deployments", "replicasets", "statefulsets"}, r.Plural) {
		return ".spec.replicas", ".spec.selector", true
	}
	rec := view.Get(storage.Key{Bucket: definitions, Name: r.GroupResource()})
	if rec == nil {
		return "", "", false
	}
	var d struct {
		Spec struct {
			Versions []struct {
				Name         string `json:"name"`
				Subresources struct {
					Scale *struct {
						Replicas string `json:"specReplicasPath"`
						Selector string `json:"labelSelectorPath"`
					} `json:"scale"`
				} `json:"subresources"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if step.Decode(rec, &d) != nil {
		return "", "", false
	}
	for _, v := range d.Spec.Versions {
		if s := v.Subresources.Scale; v.Name == r.Version && s != nil {
			return s.Replicas, s.Selector, true
		}
	}
	return "", "", false
}

// member returns what stands at a path such as ".spec.replicas", nil if nothing does.
func member(object []byte, path string) []byte {
	if path == "" {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		object = step.Member(object, name)
	}
	return object
}

// unmeasured returns reason and message of the condition ScalingActive without a metrics API.
func unmeasured(namespace string, m *autoscalingv2.MetricSpec) (reason, message string) {
	const (
		resources = "unable to get metrics for resource %s: unable to fetch metrics from resource metrics API: " +
			"the server could not find the requested resource (get pods.metrics.k8s.io)"
		custom = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
	)
	resource := func(name string, target autoscalingv2.MetricTarget) string {
		what := "usage"
		if target.AverageValue == nil {
			what = "utilization"
		}
		return fmt.Sprintf("failed to get %s %s: "+resources, name, what, name)
	}
	switch {
	case m.Resource != nil:
		return "FailedGetResourceMetric", resource(string(m.Resource.Name), m.Resource.Target)
	case m.ContainerResource != nil:
		return "FailedGetContainerResourceMetric", resource(string(m.ContainerResource.Name), m.ContainerResource.Target)
	case m.Pods != nil:
		return "FailedGetPodsMetric", fmt.Sprintf("unable to get metric %s: %s", m.Pods.Metric.Name, custom)
	case m.Object != nil:
		about := m.Object.DescribedObject
		return "FailedGetObjectMetric", fmt.Sprintf("unable to get metric %s: %s on %s %s/%s", m.Object.Metric.Name, about.Kind, namespace, about.Name, custom)
	case m.External != nil:
		name := m.External.Metric.Name
		return "FailedGetExternalMetric", fmt.Sprintf("unable to get external metric %s/%s/%s: unable to fetch metrics from external metrics API: "+
			"the server could not find the requested resource (get %s.external.metrics.k8s.io)", namespace, name, selectorText(m.External.Metric.Selector), name)
	}
	return "InvalidMetricSourceType", fmt.Sprintf("unknown metric source type %q", m.Type)
}

func selectorText(s *metav1.LabelSelector) string {
	if s == nil {
		return "nil"
	}
	return s.String()
}
