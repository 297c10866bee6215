// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shared holds types that the versions have in common. It has no API group.
//
// +kubebuilder:object:generate=true
package shared

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Level is a severity.
// +kubebuilder:validation:Enum=Debug;Info;Error
type Level string

// Limits bounds something. It is embedded elsewhere.
type Limits struct {
	// Low is the lower bound.
	// +optional
	// +kubebuilder:validation:Minimum=-5
	Low int32 `json:"low,omitempty"`
	// High is the upper bound.
	// +kubebuilder:validation:Maximum=9007199254740993
	// +kubebuilder:validation:ExclusiveMaximum=true
	High int64 `json:"high"`
}

// Ports by name; a named map, so that markers at its uses apply.
type Ports map[string]intstr.IntOrString

// Names is a named list.
// +kubebuilder:validation:MaxItems=8
type Names []string

// Stamp marshals itself and says what it looks like.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
type Stamp struct{ seconds int64 }

// MarshalJSON writes the seconds.
func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.seconds) }

// Colour marshals to text.
type Colour struct{ R, G, B uint8 }

// MarshalText writes the colour as text.
func (c Colour) MarshalText() ([]byte, error) { return []byte{c.R, c.G, c.B}, nil }

// Tree refers to itself.
type Tree struct {
	Name string `json:"name"`
	// +optional
	Children []Tree `json:"children,omitempty"`
}

// Manual has a method of its own.
type Manual struct {
	Data []byte `json:"data,omitempty"`
}

// DeepCopyInto copies by hand.
func (m *Manual) DeepCopyInto(out *Manual) { out.Data = append([]byte(nil), m.Data...) }

// Pod refers to types of Kubernetes.
type Pod struct {
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// +optional
	Affinity *corev1.NodeAffinity `json:"affinity,omitempty"`
}
