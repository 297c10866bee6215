// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/steer-dev/steer/apiserver/resource"
)

// window is the time over which usage is measured.
const window = 15 * time.Second

// NodeMetrics is the usage of a node.
type NodeMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Timestamp metav1.Time         `json:"timestamp"`
	Window    metav1.Duration     `json:"window"`
	Usage     corev1.ResourceList `json:"usage"`
}

// DeepCopyObject implements runtime.Object.
func (m *NodeMetrics) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Usage = m.Usage.DeepCopy()
	return &out
}

// PodMetrics is the usage of the containers of a Pod.
type PodMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Timestamp  metav1.Time        `json:"timestamp"`
	Window     metav1.Duration    `json:"window"`
	Containers []ContainerMetrics `json:"containers"`
}

// ContainerMetrics is the usage of one container.
type ContainerMetrics struct {
	Name  string              `json:"name"`
	Usage corev1.ResourceList `json:"usage"`
}

// DeepCopyObject implements runtime.Object.
func (m *PodMetrics) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Containers = append([]ContainerMetrics{}, m.Containers...)
	for i := range out.Containers {
		out.Containers[i].Usage = m.Containers[i].Usage.DeepCopy()
	}
	return &out
}

// fleet is a simulated fleet. Its fields are set before it is read.
type fleet struct {
	nodes, pods int // pods on each node
	now         func() time.Time
}

// usage is that of a Pod: a wave of five minutes around half a core, whose phase depends
// on the name.
func (f *fleet) usage(pod string) corev1.ResourceList {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod)) // it never fails
	phase := 2 * math.Pi * (float64(h.Sum32()%300) + float64(f.now().Unix()%300)) / 300
	wave := 1 + 0.8*math.Sin(phase)
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(500*wave), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(256*wave)<<20, resource.BinarySI),
	}
}

func (f *fleet) podName(node, pod int) string { return fmt.Sprintf("web-%d-%d", node, pod) }

// node returns the metrics of a node: the sum of its Pods.
func (f *fleet) node(n int) *NodeMetrics {
	m := &NodeMetrics{Timestamp: metav1.NewTime(f.now()), Window: metav1.Duration{Duration: window}, Usage: corev1.ResourceList{}}
	m.Name = fmt.Sprintf("node-%d", n)
	for p := range f.pods {
		for name, value := range f.usage(f.podName(n, p)) {
			sum := m.Usage[name]
			sum.Add(value)
			m.Usage[name] = sum
		}
	}
	return m
}

// pod returns the metrics of a Pod.
func (f *fleet) pod(n, p int) *PodMetrics {
	m := &PodMetrics{Timestamp: metav1.NewTime(f.now()), Window: metav1.Duration{Duration: window}}
	m.Name, m.Namespace, m.Labels = f.podName(n, p), "default", map[string]string{"app": "web"}
	m.Containers = []ContainerMetrics{{Name: "web", Usage: f.usage(m.Name)}}
	return m
}

// nodeMetrics computes the metrics of nodes.
type nodeMetrics struct{ *fleet }

// List implements resource.Lister.
func (m nodeMetrics) List(context.Context, *api.Request, *internalversion.ListOptions) (*api.List, error) {
	list := &api.List{}
	for n := range m.nodes {
		list.Items = append(list.Items, m.node(n))
	}
	return list, nil
}

// Get implements resource.Getter.
func (m nodeMetrics) Get(ctx context.Context, r *api.Request) (api.Object, error) {
	return find(ctx, r, m)
}

// podMetrics computes the metrics of Pods.
type podMetrics struct{ *fleet }

// List implements resource.Lister.
func (m podMetrics) List(_ context.Context, r *api.Request, _ *internalversion.ListOptions) (*api.List, error) {
	list := &api.List{}
	if r.Namespace != "" && r.Namespace != "default" {
		return list, nil
	}
	for n := range m.nodes {
		for p := range m.pods {
			list.Items = append(list.Items, m.pod(n, p))
		}
	}
	return list, nil
}

// Get implements resource.Getter.
func (m podMetrics) Get(ctx context.Context, r *api.Request) (api.Object, error) {
	return find(ctx, r, m)
}

// find returns the object that a request names.
func find(ctx context.Context, r *api.Request, in api.Lister) (api.Object, error) {
	list, err := in.List(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	for _, obj := range list.Items {
		if obj.GetName() == r.Name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
}
