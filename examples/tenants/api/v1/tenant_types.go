// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantSpec is the desired state of a Tenant.
type TenantSpec struct {
	// Owners are the users who may edit in the namespace of the tenant.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	Owners []string `json:"owners"`
	// Plan decides about the quota of the namespace. The default is small.
	// +kubebuilder:validation:Enum=small;large
	// +optional
	Plan string `json:"plan,omitempty"`
	// MaxDatabases is how many Databases the tenant may have. The default is that of the
	// plan, 2 or 10.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxDatabases int32 `json:"maxDatabases,omitempty"`
}

// TenantStatus is the observed state of a Tenant.
type TenantStatus struct {
	// Namespace of the tenant.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Databases is how many the tenant has.
	// +optional
	Databases int32 `json:"databases,omitempty"`
	// ObservedGeneration is the generation that the controller acted on last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the Tenant, such as Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Tenant is the schema of the tenants API.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:conversion:webhook
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.spec.plan`
// +kubebuilder:printcolumn:name="Databases",type=integer,JSONPath=`.status.databases`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TenantSpec   `json:"spec,omitempty"`
	Status TenantStatus `json:"status,omitempty"`
}

// TenantList is a list of Tenant objects.
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}
