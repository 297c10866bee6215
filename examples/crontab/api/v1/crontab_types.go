// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the CronTab API: the custom resource that the Kubernetes
// documentation introduces, with a status, validation and columns added.
//
// +kubebuilder:object:generate=true
// +groupName=stable.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the API.
var GroupVersion = schema.GroupVersion{Group: "stable.example.com", Version: "v1"}

// AddToScheme registers the kinds of the API.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &CronTab{}, &CronTabList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// CronTab runs an image at the times of a schedule.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:conversion:webhook
// +kubebuilder:resource:shortName=ct
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.cronSpec`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CronTab struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec CronTabSpec `json:"spec"`
	// Status is what the operator has seen and done.
	// +optional
	Status CronTabStatus `json:"status,omitempty"`
}

// Hub marks the version that the others convert to and from.
func (*CronTab) Hub() {}

// CronTabSpec is what is wanted.
type CronTabSpec struct {
	// CronSpec is the schedule: minute, hour, day of month, month, day of week. A name
	// such as @daily is replaced by the five fields.
	// +kubebuilder:validation:MinLength=1
	// +required
	CronSpec string `json:"cronSpec"`
	// Image to run at each due time.
	// +kubebuilder:validation:MinLength=1
	// +required
	Image string `json:"image"`
	// Replicas of the image that run side by side; 1 when absent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// CronTabStatus is what the operator has seen and done.
type CronTabStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Active names the Jobs that have not finished.
	// +listType=atomic
	// +optional
	Active []string `json:"active,omitempty"`
	// LastScheduleTime is the due time of the newest Job.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// Conditions: Ready reports whether the schedule is being followed.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CronTabList is a list of CronTabs.
// +kubebuilder:object:root=true
type CronTabList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronTab `json:"items"`
}
