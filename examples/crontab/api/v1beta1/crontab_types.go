// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the CronTab API before v1, which renamed two fields. It is served,
// and converted to v1 and back.
//
// +kubebuilder:object:generate=true
// +groupName=stable.example.com
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
)

// AddToScheme registers the kinds of the API.
func AddToScheme(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: v1.GroupVersion.Group, Version: "v1beta1"}
	s.AddKnownTypes(version, &CronTab{}, &CronTabList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}

// CronTab runs an image at the times of a schedule.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:deprecatedversion:warning="stable.example.com/v1beta1 CronTab is deprecated; use stable.example.com/v1"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Parallelism",type=integer,JSONPath=`.spec.parallelism`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CronTab struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec CronTabSpec `json:"spec"`
	// Status is what the operator has seen and done; it is as in v1.
	// +optional
	Status v1.CronTabStatus `json:"status,omitempty"`
}

// CronTabSpec is what is wanted.
type CronTabSpec struct {
	// Schedule is minute, hour, day of month, month, day of week. It is cronSpec in v1.
	// +kubebuilder:validation:MinLength=1
	// +required
	Schedule string `json:"schedule"`
	// Image to run at each due time.
	// +kubebuilder:validation:MinLength=1
	// +required
	Image string `json:"image"`
	// Parallelism is how many of the image run side by side; 1 when absent. It is replicas
	// in v1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Parallelism *int32 `json:"parallelism,omitempty"`
}

// CronTabList is a list of CronTabs.
// +kubebuilder:object:root=true
type CronTabList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronTab `json:"items"`
}
