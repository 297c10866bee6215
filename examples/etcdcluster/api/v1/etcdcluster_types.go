// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the EtcdCluster API.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the API.
var GroupVersion = schema.GroupVersion{Group: "etcd.example.com", Version: "v1"}

// AddToScheme registers the kinds of the API.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &EtcdCluster{}, &EtcdClusterList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// EtcdCluster is a cluster of etcd members that is kept at its size.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size
// +kubebuilder:resource:shortName=etcd
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +required
	Spec EtcdClusterSpec `json:"spec"`
	// Status is what the operator has seen and done.
	// +optional
	Status EtcdClusterStatus `json:"status,omitempty"`
}

// EtcdClusterSpec is what is wanted.
type EtcdClusterSpec struct {
	// Size is the number of members. An odd number survives as many losses as the
	// next even one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +kubebuilder:default=3
	// +optional
	Size int32 `json:"size,omitempty"`
	// Image of etcd, with etcdutl in it.
	// +kubebuilder:validation:MinLength=1
	// +required
	Image string `json:"image"`
	// Backup takes snapshots; none are taken when it is absent.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
	// Restore is the snapshot that a new cluster begins with, as a name in the
	// volume of the snapshots; empty when absent.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a cluster begins once: make another one to restore a snapshot"
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	Restore string `json:"restore,omitempty"`
}

// Backup says when snapshots are taken and how many are kept.
type Backup struct {
	// Every is the time from one snapshot to the next.
	// +required
	Every metav1.Duration `json:"every"`
	// Keep is how many are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=3
	// +optional
	Keep int32 `json:"keep,omitempty"`
}

// EtcdClusterStatus is what the operator has seen and done.
type EtcdClusterStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ClusterID is etcd's own, in hexadecimal digits. Once it is known, a cluster
	// that has lost its data is not made anew.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Size is how many members have a vote.
	// +optional
	Size int32 `json:"size,omitempty"`
	// Members of the cluster, as etcd lists them.
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []Member `json:"members,omitempty"`
	// LastBackup is the newest snapshot.
	// +optional
	LastBackup *Snapshot `json:"lastBackup,omitempty"`
	// Conditions: Available, Progressing, Degraded.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Member of a cluster.
type Member struct {
	// Name of the member and of its Pod.
	Name string `json:"name"`
	// ID is etcd's own, in hexadecimal digits.
	// +optional
	ID string `json:"id,omitempty"`
	// State: Learner, Voter, or Silent for one that does not answer.
	// +kubebuilder:validation:Enum=Learner;Voter;Silent
	State MemberState `json:"state"`
}

// MemberState is what a member is up to.
type MemberState string

// The states of members.
const (
	Learner MemberState = "Learner"
	Voter   MemberState = "Voter"
	Silent  MemberState = "Silent"
)

// Snapshot of a cluster's data.
type Snapshot struct {
	// Name of the snapshot in the volume of the snapshots.
	Name string `json:"name"`
	// Time when it was taken.
	Time metav1.Time `json:"time"`
}

// The conditions of an EtcdCluster.
const (
	// Available: the cluster has a quorum, so that it takes writes.
	Available = "Available"
	// Progressing: the operator is about to change something.
	Progressing = "Progressing"
	// Degraded: a member is lost or silent.
	Degraded = "Degraded"
)

// EtcdClusterList is a list of EtcdClusters.
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdCluster `json:"items"`
}
