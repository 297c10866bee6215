// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/custom"
	api "github.com/steer-dev/steer/apiserver/resource"
)

// MetricValueList is that of custom.metrics.k8s.io/v1beta2.
type MetricValueList struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"` // the JSON of an empty list

	Items []metricValue `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *MetricValueList) DeepCopyObject() runtime.Object {
	out := *l
	l.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Items = append([]metricValue(nil), l.Items...)
	return &out
}

// metricValue is a value of custom.metrics.k8s.io/v1beta2.
type metricValue struct {
	DescribedObject corev1.ObjectReference `json:"describedObject"`
	Metric          struct {
		Name string `json:"name"`
	} `json:"metric"`
	Timestamp metav1.Time       `json:"timestamp"`
	Value     resource.Quantity `json:"value"`
}

// values returns the values of a metric for an object, or for those that a selector selects
// if the name is "*"; metric selects by the labels of the metric.
type values func(ctx context.Context, r *api.Request, objects, metric labels.Selector) ([]metricValue, error)

// get is a metric of custom.metrics.k8s.io: a subresource that is a list of values.
func get(metric string, of values) api.Subresource {
	gv := schema.GroupVersion{Group: "custom.metrics.k8s.io", Version: "v1beta2"}
	return custom.Read(metric, gv, func(ctx context.Context, r *api.Request, parameters url.Values) (*MetricValueList, error) {
		objects, err := labels.Parse(parameters.Get("labelSelector"))
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		metric, err := labels.Parse(parameters.Get("metricLabelSelector"))
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		items, err := of(ctx, r, objects, metric)
		if err != nil {
			return nil, err
		}
		return &MetricValueList{Items: append([]metricValue{}, items...)}, nil
	})
}
