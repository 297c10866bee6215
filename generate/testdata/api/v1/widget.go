// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/generate/testdata/api/shared"
)

// Widget is stored and served. Its description is long enough that go-yaml folds it at the eightieth column, and it's quoted: "yes".
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=widgetz,shortName=wi;wz,categories={all,things},singular=widge
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="how many",format=int32,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:metadata:annotations="a=b=c",labels={x=y}
// +kubebuilder:metadata:annotations={api-approved.kubernetes.io=unapproved}
// +kubebuilder:selectablefield:JSONPath=.spec.name
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() < 40",message="too long"
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetList is a list of widgets.
//
// +kubebuilder:object:root=true
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// WidgetSpec is what is wanted.
// +kubebuilder:validation:ExactlyOneOf=left;right
// +kubebuilder:validation:AtMostOneOf=left;middle
// +kubebuilder:validation:AtLeastOneOf=left;right;middle
// +structType=atomic
type WidgetSpec struct {
	shared.Limits `json:",inline"`
	Mixed         `json:",inline"`

	// Left or right.
	Left *string `json:"left,omitempty"`
	// Right or left.
	Right *string `json:"right,omitempty"`
	// Middle has a default that is JSON and one that is not.
	// +default="json"
	// +kubebuilder:default=bare
	Middle string `json:"middle,omitempty"`

	// Name is checked in many ways.
	// TODO: this line is not documentation.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:title="A name"
	// +kubebuilder:example=widget-1
	// +kubebuilder:externalDocs:url="https://example.com/names",description="about names"
	// +k8s:immutable
	Name string `json:"name"`

	// Replicas is how many.
	//
	// - a list
	//   - indented
	//
	// ---
	// What follows is for developers.
	// +kubebuilder:default=3
	// +kubebuilder:validation:MultipleOf=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=false
	// +optional
	// +k8s:immutable
	Replicas *int32 `json:"replicas,omitempty"`

	// ```
	// TODO: kept, it is code
	// ```
	Ratio resource.Quantity `json:"ratio,omitempty"`

	Enabled bool   `json:"enabled,omitempty"`
	Bytes   []byte `json:"bytes,omitempty"`
	Eights  []int8 `json:"eights,omitempty"`
	U32     uint32 `json:"u32,omitempty"`
	U64     uint64 `json:"u64,omitempty"`
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:Enum={a,"b c",1,true}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:UniqueItems=false
	// +listType=set
	Tags []string `json:"tags,omitempty"`
	// +kubebuilder:default={}
	Empty []string `json:"empty,omitempty"`
	// +kubebuilder:default={80,443}
	Numbers []int64 `json:"numbers,omitempty"`
	// +kubebuilder:default={key: {nested: "x", n: 1.5}, list: {a,b}}
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=4
	// +mapType=granular
	Anything map[string]apiextensionsv1.JSON `json:"anything,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +k8s:listMapKey=name
	// +listMapKey=level
	Conditions []Condition `json:"conditions,omitempty"`
	// +nullable
	Level *shared.Level `json:"level,omitempty"`
	// +kubebuilder:default=5
	// +kubebuilder:validation:Enum={5,"50%"}
	Port intstr.IntOrString `json:"port,omitempty"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^[0-9]+%$"
	Percent intstr.IntOrString `json:"percent,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template,omitempty"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:XPreserveUnknownFields
	Schemaless map[string]string `json:"schemaless,omitempty"`
	// +kubebuilder:validation:Type=integer
	// +kubebuilder:validation:Format=int64
	// +kubebuilder:validation:Maximum=10
	Retyped string `json:"retyped,omitempty"`

	Stamp    shared.Stamp                `json:"stamp,omitempty"`
	Colour   shared.Colour               `json:"colour,omitempty"`
	ByColour map[shared.Colour]string    `json:"byColour,omitempty"`
	Tree     shared.Tree                 `json:"tree,omitempty"`
	Manual   *shared.Manual              `json:"manual,omitempty"`
	Pod      shared.Pod                  `json:"pod,omitempty"`
	Ports    shared.Ports                `json:"ports,omitempty"`
	Names    shared.Names                `json:"names,omitempty"`
	Matrix   [][]string                  `json:"matrix,omitempty"`
	Deep     map[string]map[string][]int `json:"deep,omitempty"`
	Pointers map[string]*Condition       `json:"pointers,omitempty"`
	When     metav1.Time                 `json:"when,omitempty"`
	Micro    *metav1.MicroTime           `json:"micro,omitempty"`
	Every    metav1.Duration             `json:"every,omitempty"`
	Selector *metav1.LabelSelector       `json:"selector,omitempty"`
	Ref      *corev1.ObjectReference     `json:"ref,omitempty"`
	Requests corev1.ResourceList         `json:"requests,omitempty"`
	Meta     metav1.ObjectMeta           `json:"meta,omitempty"`
	Either   Either                      `json:"either,omitempty"`
	Dash     string                      `json:"-,omitempty"`
	Skipped  *int                        `json:"-"`
	Y        string                      `json:"y,omitempty"`
	Ten      string                      `json:"a10,omitempty"`
	Two      string                      `json:"a2,omitempty"`
	Alias    AliasOfString               `json:"alias,omitempty"`
	Enum     Phase                       `json:"enum,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || self.size() > 2",messageExpression="'was ' + oldSelf",reason=FieldValueForbidden,fieldPath=".x",optionalOldSelf=true
	// +kubebuilder:validation:XValidation:rule="self != 'a long expression that does not fit on one line because it goes on and on'"
	Required string `json:"required,omitempty"`
	// +k8s:required
	K8sRequired []string `json:"k8sRequired,omitempty"`
	// +k8s:optional
	// +k8s:maxItems=4 # no more
	K8sOptional []string `json:"k8sOptional"`
	// +k8s:minimum=1
	// +k8s:maximum=5
	// +kubebuilder:validation:Optional
	Bounded int `json:"bounded"`
}

// AliasOfString is an alias.
// +kubebuilder:validation:MaxLength=5
type AliasOfString = string

// Phase is an enumeration of constants.
// +k8s:enum
type Phase string

const (
	// PhaseOn is on.
	PhaseOn Phase = "On"
	// PhaseOff is off.
	PhaseOff Phase = "Off"
)

// Mixed is embedded and tightens what Limits says.
type Mixed struct {
	// Low is tighter here.
	// +kubebuilder:validation:Minimum=1
	Low int32 `json:"low,omitempty"`
	// Extra is only here.
	Extra map[string]string `json:"extra,omitempty"`
}

// Either is a named pointer-free struct with everything shallow.
type Either struct {
	A int8   `json:"a,omitempty"`
	B string `json:"b,omitempty"`
}

// Condition is keyed.
type Condition struct {
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=Info
	Level shared.Level `json:"level,omitempty"`
	// +optional
	// +mapType=atomic
	Details map[string]string `json:"details,omitempty"`
}

// WidgetStatus is what is.
type WidgetStatus struct {
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +optional
	Selector string `json:"selector,omitempty"`
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// Handlers are by name; a named map of slices of pointers.
type Handlers map[string][]*Condition

// Chain is a named slice of a named slice.
type Chain []shared.Names

// Opaque is left alone.
// +kubebuilder:object:generate=false
type Opaque struct{ f func() }
