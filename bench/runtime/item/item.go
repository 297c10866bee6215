// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package item is the Go type of the objects that the benchmarks create.
package item

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme registers the kind.
func AddToScheme(s *runtime.Scheme) error {
	group := schema.GroupVersion{Group: "bench.example.com", Version: "v1"}
	s.AddKnownTypes(group, &Item{}, &ItemList{})
	metav1.AddToGroupVersion(s, group)
	return nil
}

// Item is an object of about 2 KB.
type Item struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec is what is wanted.
type Spec struct {
	Replicas int32     `json:"replicas,omitempty"`
	Image    string    `json:"image,omitempty"`
	Payload  []Setting `json:"payload,omitempty"`
}

// Setting is a piece of the payload.
type Setting struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// Status is what there is.
type Status struct {
	Ready int32  `json:"ready,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// ItemList is a list of items.
type ItemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Item `json:"items"`
}

// DeepCopy returns a copy that shares nothing.
func (i *Item) DeepCopy() *Item {
	out := *i
	i.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Payload = slices.Clone(i.Spec.Payload)
	return &out
}

// DeepCopyInto copies into out.
func (i *Item) DeepCopyInto(out *Item) { *out = *i.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (i *Item) DeepCopyObject() runtime.Object { return i.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *ItemList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Item, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}
