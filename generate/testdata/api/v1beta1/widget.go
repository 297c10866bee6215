// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=fixture.steer.dev
// +kubebuilder:validation:Optional
// +kubebuilder:ac:generate=true
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/steer-dev/steer/generate/testdata/api/v1"
)

// SchemeGroupVersion is the package's API version.
var SchemeGroupVersion = schema.GroupVersion{Group: "fixture.steer.dev", Version: "v1beta1"}

type (
	// Widget is the old version.
	// +kubebuilder:unservedversion
	// +kubebuilder:deprecatedversion:warning="use v1"
	// +kubebuilder:resource:path=widgetz,scope=Namespaced,shortName=wi;wz,categories={all,things},singular=widge
	// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
	Widget struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		// Spec in the new version's form.
		Spec v1.Mixed `json:"spec"`
		// Must be set.
		// +kubebuilder:validation:Required
		Must string `json:"must"`
	}

	// Gadget is cluster-wide.
	// +kubebuilder:resource:scope=Cluster
	// +k8s:deepcopy-gen=true
	Gadget struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`

		Data map[string][]byte `json:"data,omitempty"`
	}
)
