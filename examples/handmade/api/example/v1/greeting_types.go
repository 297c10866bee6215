// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the Greeting API: a name, and the greeting of it.
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
	s.AddKnownTypes(group, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(s, group)
	return nil
}

// Greeting is a name that is to be greeted.
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Text",type=string,JSONPath=`.status.text`
type Greeting struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec GreetingSpec `json:"spec"`
	// Status is what there is.
	// +optional
	Status GreetingStatus `json:"status,omitempty"`
}

// GreetingSpec is what is wanted.
type GreetingSpec struct {
	// To is the name to greet.
	// +kubebuilder:validation:MinLength=1
	// +required
	To string `json:"to"`
}

// GreetingStatus is what there is.
type GreetingStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Text is the greeting.
	// +optional
	Text string `json:"text,omitempty"`
}

// GreetingList is a list of Greetings.
// +kubebuilder:object:root=true
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Greeting `json:"items"`
}
