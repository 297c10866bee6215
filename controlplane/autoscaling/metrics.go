// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
)

// The APIs that metrics are read from.
const (
	resourceGroup   = "metrics.k8s.io"
	resourceVersion = "v1beta1"
	customGroup     = "custom.metrics.k8s.io"
	externalGroup   = "external.metrics.k8s.io"
	externalVersion = "v1beta1"
)

// Bounds of what servers of metrics are asked.
const (
	readTimeout   = 30 * time.Second
	mostBytes     = 16 << 20
	defaultWindow = time.Minute // of a custom metric that has none
)

// query is what one metric of an autoscaler is read with, decided before the servers are
// asked.
type query struct {
	namespace string
	spec      *autoscalingv2.MetricSpec
	// pods are those of the target.
	pods labels.Selector
	// resource is that of the object which an object metric describes, or err why there is
	// none.
	resource string
	err      error
}

// sample is the value of a metric for one Pod, in thousandths.
type sample struct {
	value  int64
	at     time.Time
	window time.Duration
}

// reading is the answer to a query: for Pods by their names, else values in thousandths.
type reading struct {
	pods   map[string]sample
	values []int64
	err    error
}

// read asks the servers of metrics. It is called outside of steps.
func read(ctx context.Context, fetch step.Fetcher, q query) reading {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var out reading
	switch m := q.spec; {
	case m.Resource != nil:
		out.pods, out.err = readResource(ctx, fetch, q, m.Resource.Name, "")
	case m.ContainerResource != nil:
		out.pods, out.err = readResource(ctx, fetch, q, m.ContainerResource.Name, m.ContainerResource.Container)
	case m.Pods != nil:
		var items []metricValue
		items, out.err = readCustom(ctx, fetch, q, "pods", "*", &m.Pods.Metric)
		out.pods = make(map[string]sample, len(items))
		for i := range items {
			v := &items[i]
			out.pods[v.DescribedObject.Name] = sample{v.Value.MilliValue(), v.Timestamp.Time, v.window()}
		}
	case m.Object != nil:
		out.values, out.err = readObject(ctx, fetch, q, m.Object)
	case m.External != nil:
		out.values, out.err = readExternal(ctx, fetch, q, &m.External.Metric)
	}
	return out
}

// podMetrics is what is read of an object of metrics.k8s.io.
type podMetrics struct {
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time     `json:"timestamp"`
	Window            metav1.Duration `json:"window"`
	Containers        []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// readResource returns the use of a resource by Pods, or by one of their containers.
func readResource(ctx context.Context, fetch step.Fetcher, q query, name corev1.ResourceName, container string) (map[string]sample, error) {
	const api = "resource metrics API"
	var list struct {
		Items []podMetrics `json:"items"`
	}
	path := "/apis/" + resourceGroup + "/" + resourceVersion + "/namespaces/" + q.namespace + "/pods"
	if err := get(ctx, fetch, path, selecting("labelSelector", q.pods), schema.GroupResource{Group: resourceGroup, Resource: "pods"}, "", &list); err != nil {
		return nil, unreadable(api, err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from " + api)
	}
	out := make(map[string]sample, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		if value, ok := m.usage(name, container); ok {
			out[m.Name] = sample{value, m.Timestamp.Time, m.Window.Duration}
		}
	}
	return out, nil
}

// usage returns the use of a resource by one container, or by all of them if each reports it.
func (m *podMetrics) usage(name corev1.ResourceName, container string) (total int64, ok bool) {
	for i := range m.Containers {
		c := &m.Containers[i]
		if container != "" && c.Name != container {
			continue
		}
		used, reported := c.Usage[name]
		if !reported {
			return 0, false
		}
		total, ok = total+used.MilliValue(), true
	}
	return total, ok
}

// metricValue is what is read of a value of custom.metrics.k8s.io, in any version.
type metricValue struct {
	DescribedObject corev1.ObjectReference `json:"describedObject"`
	Timestamp       metav1.Time            `json:"timestamp"`
	WindowSeconds   *int64                 `json:"windowSeconds"`
	OldWindow       *int64                 `json:"window"`
	Value           resource.Quantity      `json:"value"`
}

func (v *metricValue) window() time.Duration {
	for _, seconds := range []*int64{v.WindowSeconds, v.OldWindow} {
		if seconds != nil {
			return time.Duration(*seconds) * time.Second
		}
	}
	return defaultWindow
}

// readObject returns the value of a metric that describes one object.
func readObject(ctx context.Context, fetch step.Fetcher, q query, m *autoscalingv2.ObjectMetricSource) ([]int64, error) {
	name := m.DescribedObject.Name
	if q.resource == "namespaces" { // an autoscaler reads of its own namespace only
		name = q.namespace
	}
	items, err := readCustom(ctx, fetch, q, q.resource, name, &m.Metric)
	if err != nil {
		return nil, err
	}
	if len(items) != 1 {
		return nil, unreadable(customAPI, fmt.Errorf("the custom metrics API server returned %d results when we asked for exactly one", len(items)))
	}
	return []int64{items[0].Value.MilliValue()}, nil
}

const customAPI = "custom metrics API"

// readCustom returns the values of a metric for the objects of a resource, all of them that
// are the target's for the name "*".
func readCustom(ctx context.Context, fetch step.Fetcher, q query, of, name string, m *autoscalingv2.MetricIdentifier) ([]metricValue, error) {
	version, err := customVersion(ctx, fetch)
	if err != nil {
		return nil, unreadable(customAPI, err)
	}
	if q.err != nil {
		return nil, unreadable(customAPI, q.err)
	}
	selector, err := metav1.LabelSelectorAsSelector(m.Selector)
	if err != nil {
		return nil, err
	}
	params := selecting("metricLabelSelector", selector)
	path := "/apis/" + customGroup + "/" + version + "/namespaces/" + q.namespace + "/"
	if of == "namespaces" {
		of, path, name = "metrics", path+"metrics/"+url.PathEscape(m.Name), m.Name
	} else {
		path += of + "/" + url.PathEscape(name) + "/" + url.PathEscape(m.Name)
	}
	if name == "*" {
		for key, values := range selecting("labelSelector", q.pods) {
			params[key] = values
		}
	}
	var list struct {
		Items []metricValue `json:"items"`
	}
	if err := get(ctx, fetch, path, params, schema.GroupResource{Group: customGroup, Resource: of}, name, &list); err != nil {
		return nil, unreadable(customAPI, err)
	}
	if len(list.Items) == 0 && name == "*" {
		return nil, errors.New("no metrics returned from " + customAPI)
	}
	return list.Items, nil
}

// customVersion returns the version of custom metrics that the server prefers, if it is one
// of those that this controller reads.
func customVersion(ctx context.Context, fetch step.Fetcher) (string, error) {
	var group metav1.APIGroup
	if err := get(ctx, fetch, "/apis/"+customGroup, nil, schema.GroupResource{}, "", &group); err != nil {
		if apierrors.IsNotFound(err) {
			return "", fmt.Errorf("no custom metrics API (%s) registered", customGroup)
		}
		return "", err
	}
	known := []string{"v1beta2", "v1beta1"}
	if slices.Contains(known, group.PreferredVersion.Version) {
		return group.PreferredVersion.Version, nil
	}
	for _, v := range group.Versions {
		if slices.Contains(known, v.Version) {
			return v.Version, nil
		}
	}
	return "", errors.New("no known available metric versions found")
}

// readExternal returns the values of a metric that describes nothing in the cluster.
func readExternal(ctx context.Context, fetch step.Fetcher, q query, m *autoscalingv2.MetricIdentifier) ([]int64, error) {
	const api = "external metrics API"
	selector, err := metav1.LabelSelectorAsSelector(m.Selector)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Value resource.Quantity `json:"value"`
		} `json:"items"`
	}
	path := "/apis/" + externalGroup + "/" + externalVersion + "/namespaces/" + q.namespace + "/" + url.PathEscape(m.Name)
	if err := get(ctx, fetch, path, selecting("labelSelector", selector), schema.GroupResource{Group: externalGroup, Resource: m.Name}, "", &list); err != nil {
		return nil, unreadable(api, err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from " + api)
	}
	out := make([]int64, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Value.MilliValue()
	}
	return out, nil
}

func unreadable(api string, err error) error {
	return fmt.Errorf("unable to fetch metrics from %s: %w", api, err)
}

// selecting returns a parameter with a selector, none if that is empty.
func selecting(parameter string, s labels.Selector) url.Values {
	out := url.Values{}
	if text := s.String(); text != "" {
		out.Set(parameter, text)
	}
	return out
}

// get reads what is at a path. An answer without a Status becomes the error that client-go
// makes of it, which names the resource and, if one is asked for, the object.
func get(ctx context.Context, fetch step.Fetcher, path string, params url.Values, of schema.GroupResource, name string, into any) error {
	answer, err := fetch(ctx, step.Request{User: user, Method: http.MethodGet, Path: path, Query: params, Accept: step.JSON})
	if err != nil {
		return step.ClientError(err, "get", of, name)
	}
	defer answer.Close()
	if err := json.NewDecoder(io.LimitReader(answer, mostBytes)).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}
