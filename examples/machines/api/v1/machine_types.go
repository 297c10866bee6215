// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the Machine API: processes on the host of the server.
//
// +kubebuilder:object:generate=true
// +k8s:protobuf-gen=package
// +groupName=example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the API.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "example.com", Version: "v1"}
}

// AddToScheme registers the kinds of the API.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Machine{}, &MachineList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// Machine is a process on the host of the server.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mc
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="PID",type=integer,JSONPath=`.status.pid`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what runs.
	// +required
	Spec MachineSpec `json:"spec"`
	// Status is what has become of it.
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// MachineSpec is what runs.
type MachineSpec struct {
	// Command and its arguments.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a machine runs one command: create another machine"
	// +required
	Command []string `json:"command"`
	// Ports on the host's loopback address that clients may be forwarded to.
	// +optional
	Ports []int32 `json:"ports,omitempty"`
	// TerminationGracePeriodSeconds is the time between SIGTERM and SIGKILL of a deletion
	// that does not say it.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

// The phases of a machine, in their order.
const (
	Running  = "Running"
	Stopping = "Stopping" // it was sent SIGTERM
	Killed   = "Killed"   // it was sent SIGKILL
	Exited   = "Exited"
)

// MachineStatus is what has become of a machine.
type MachineStatus struct {
	// Phase is Running, Stopping, Killed or Exited; empty before the process was started.
	// +optional
	Phase string `json:"phase,omitempty"`
	// PID of the process.
	// +optional
	PID int `json:"pid,omitempty"`
	// ExitCode of a process that has ended; negative after a signal.
	// +optional
	ExitCode *int `json:"exitCode,omitempty"`
	// Message says why there is no process.
	// +optional
	Message string `json:"message,omitempty"`
}

// MachineList is a list of machines.
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Machine `json:"items"`
}
