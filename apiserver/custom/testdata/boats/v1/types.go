// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is an API whose objects have a protobuf form.
//
// +kubebuilder:object:generate=true
// +k8s:protobuf-gen=package
// +groupName=boats.example.com
package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Boat floats.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BoatSpec   `json:"spec"`
	Status BoatStatus `json:"status,omitempty"`
}

// BoatSpec is what a boat is.
type BoatSpec struct {
	// +kubebuilder:validation:MinLength=1
	Hull string `json:"hull"`
	// +kubebuilder:default=2
	Masts  *int32                `json:"masts,omitempty"`
	Crew   []Sailor              `json:"crew,omitempty"`
	Flags  map[string]string     `json:"flags,omitempty"`
	Draft  resource.Quantity     `json:"draft,omitempty"`
	Berth  *intstr.IntOrString   `json:"berth,omitempty"`
	Log    []byte                `json:"log,omitempty"`
	Built  *metav1.Time          `json:"built,omitempty"`
	Papers *runtime.RawExtension `json:"papers,omitempty"`
}

// Sailor is one of the crew.
type Sailor struct {
	Name string `json:"name"`
	Age  int    `json:"age,omitempty"`
}

// BoatStatus is where a boat is.
type BoatStatus struct {
	Harbour string `json:"harbour,omitempty"`
}

// BoatList is a list of boats.
// +kubebuilder:object:root=true
type BoatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Boat `json:"items"`
}
