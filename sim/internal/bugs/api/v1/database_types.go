// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the Database API, which all operators of package bugs reconcile.
//
// +kubebuilder:object:generate=true
// +groupName=bugs.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme registers the kinds of the API.
func AddToScheme(s *runtime.Scheme) error {
	group := schema.GroupVersion{Group: "bugs.example.com", Version: "v1"}
	s.AddKnownTypes(group, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(s, group)
	return nil
}

// Database is what operators with bugs look after.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Database struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec DatabaseSpec `json:"spec,omitempty"`
	// Status is what there is.
	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is what is wanted.
type DatabaseSpec struct {
	// Size in GiB.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	// +optional
	Size int32 `json:"size,omitempty"`
	// Service that leads to the database.
	// +optional
	Service string `json:"service,omitempty"`
}

// DatabaseStatus is what there is.
type DatabaseStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Holds names what was made for the database.
	// +optional
	Holds string `json:"holds,omitempty"`
	// Conditions of the database.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DatabaseList is a list of databases.
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}
