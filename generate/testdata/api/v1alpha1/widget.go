// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// +groupName=fixture.steer.dev
// +versionName=v1alpha9
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Widget never left the laboratory.
// +kubebuilder:skipversion
// +kubebuilder:object:root=true
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
