// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/client"
)

// queues reads Queues. It is safe for concurrent use once cluster is set.
type queues struct {
	own     atomic.Pointer[client.Client] // nil until the server runs
	cluster client.Client                 // nil: the server stands alone
}

// lengths returns the lengths of the Queues in a namespace, by name.
func (q *queues) lengths(ctx context.Context, namespace string) (map[string]int64, error) {
	own := q.own.Load()
	if own == nil {
		return nil, apierrors.NewServiceUnavailable("the server is starting")
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("queues.example.com/v1")
	list.SetKind("QueueList")
	if err := (*own).List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for i := range list.Items {
		length, _, err := unstructured.NestedInt64(list.Items[i].Object, "spec", "length")
		if err != nil {
			return nil, err
		}
		out[list.Items[i].GetName()] = length
	}
	return out, nil
}

// ExternalMetricValue is a value of external.metrics.k8s.io.
type ExternalMetricValue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"` // labels are those of the metric

	MetricName   string            `json:"metricName"`
	MetricLabels map[string]string `json:"metricLabels"`
	Timestamp    metav1.Time       `json:"timestamp"`
	Value        resource.Quantity `json:"value"`
}

// DeepCopyObject implements runtime.Object.
func (v *ExternalMetricValue) DeepCopyObject() runtime.Object {
	out := *v
	v.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.MetricLabels = maps.Clone(v.MetricLabels)
	out.Value = v.Value.DeepCopy()
	return &out
}

// external is the metric queue-length, one value for each Queue: a list that labels select
// from.
type external struct{ *queues }

// List implements resource.Lister.
func (e external) List(ctx context.Context, r *api.Request, _ *internalversion.ListOptions) (*api.List, error) {
	lengths, err := e.lengths(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	list := &api.List{}
	for name, length := range lengths {
		tags := map[string]string{"queue": name}
		list.Items = append(list.Items, &ExternalMetricValue{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Labels: tags},
			MetricName: r.Resource.Plural, MetricLabels: tags, Timestamp: metav1.Now(), Value: *resource.NewQuantity(length, resource.DecimalSI),
		})
	}
	return list, nil
}

// ofService is the metric queue-length of a Service: the length of the Queue of its name.
func (q *queues) ofService(ctx context.Context, r *api.Request, _ labels.Selector, _ labels.Selector) ([]metricValue, error) {
	lengths, err := q.lengths(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	length, ok := lengths[r.Name]
	if !ok {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: r.Namespace, Name: r.Name}
	return []metricValue{newValue(about, "queue-length", resource.NewQuantity(length, resource.DecimalSI))}, nil
}

// shares is the metric queue-share of Pods: the length of the Queue that the label queue of
// the metric names, divided by the number of Pods.
func (q *queues) shares(ctx context.Context, r *api.Request, pods, metric labels.Selector) ([]metricValue, error) {
	name, ok := metric.RequiresExactMatch("queue")
	if !ok {
		return nil, apierrors.NewBadRequest("metricLabelSelector has to name the queue: queue=NAME")
	}
	lengths, err := q.lengths(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	if q.cluster == nil {
		return nil, errors.New("a server that stands alone knows no Pods")
	}
	var list corev1.PodList
	if err := q.cluster.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: pods}); err != nil {
		return nil, err
	}
	var out []metricValue
	for i := range list.Items {
		p := &list.Items[i]
		if r.Name == "*" || r.Name == p.Name {
			about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
			share := lengths[name] * 1000 / int64(len(list.Items))
			out = append(out, newValue(about, "queue-share", resource.NewMilliQuantity(share, resource.DecimalSI)))
		}
	}
	return out, nil
}

func newValue(about corev1.ObjectReference, metric string, value *resource.Quantity) metricValue {
	v := metricValue{DescribedObject: about, Timestamp: metav1.Now(), Value: *value}
	v.Metric.Name = metric
	return v
}
