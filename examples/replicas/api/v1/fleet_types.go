// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the Fleet API: a number of equal Pods.
//
// +kubebuilder:object:generate=true
// +groupName=example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme registers the kinds of the API.
func AddToScheme(s *runtime.Scheme) error {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s.AddKnownTypes(group, &Fleet{}, &FleetList{})
	metav1.AddToGroupVersion(s, group)
	return nil
}

// Fleet is a number of equal Pods.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Fleet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec FleetSpec `json:"spec"`
	// Status is what there is.
	// +optional
	Status FleetStatus `json:"status,omitempty"`
}

// FleetSpec is what is wanted.
type FleetSpec struct {
	// Replicas is how many Pods there are to be.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +required
	Replicas int32 `json:"replicas"`
	// Image that the Pods run.
	// +kubebuilder:validation:MinLength=1
	// +required
	Image string `json:"image"`
}

// FleetStatus is what there is.
type FleetStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is how many Pods there are.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Ready is how many of them are ready.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// Conditions: Ready reports whether all Pods are.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FleetList is a list of Fleets.
// +kubebuilder:object:root=true
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Fleet `json:"items"`
}
