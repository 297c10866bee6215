// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/steer-dev/steer/apiserver/resource"
)

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

// get is a metric of custom.metrics.k8s.io: a subresource that is a list of values. Connect is
// for answers that are no object.
func get(metric string, of values) api.Subresource {
	return api.Subresource{Name: metric, Verbs: []string{"get"}, Backend: of}
}

// Connect implements resource.Connecter.
func (of values) Connect(ctx context.Context, r *api.Request, w http.ResponseWriter, h *http.Request) {
	items, err := of.read(ctx, r, h)
	w.Header().Set("Content-Type", "application/json")
	var answer any = map[string]any{
		"apiVersion": r.Resource.Group + "/" + r.Version.Name, "kind": "MetricValueList", "metadata": map[string]any{}, "items": items,
	}
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		var known apierrors.APIStatus
		if errors.As(err, &known) {
			status = known.Status()
		}
		status.APIVersion, status.Kind = "v1", "Status"
		w.WriteHeader(int(status.Code))
		answer = status
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

func (of values) read(ctx context.Context, r *api.Request, h *http.Request) ([]metricValue, error) {
	objects, err := labels.Parse(h.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	metric, err := labels.Parse(h.URL.Query().Get("metricLabelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return of(ctx, r, objects, metric)
}
