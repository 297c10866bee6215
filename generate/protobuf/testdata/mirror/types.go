// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror has types with the fields of built-in ones, whose bytes are compared, and
// one with the forms that these do not have.
//
// +k8s:protobuf-gen=package
package mirror

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConfigMap mirrors corev1.ConfigMap.
type ConfigMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Immutable         *bool             `json:"immutable,omitempty" protobuf:"varint,4,opt,name=immutable"`
	Data              map[string]string `json:"data,omitempty" protobuf:"bytes,2,rep,name=data"`
	BinaryData        map[string][]byte `json:"binaryData,omitempty" protobuf:"bytes,3,rep,name=binaryData"`
}

// ConfigMapList mirrors corev1.ConfigMapList, without tags.
type ConfigMapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ConfigMap `json:"items"`
}

// Lease mirrors coordinationv1.Lease.
type Lease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              LeaseSpec `json:"spec,omitempty"`
}

// LeaseSpec mirrors coordinationv1.LeaseSpec.
type LeaseSpec struct {
	HolderIdentity       *string           `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds *int32            `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          *metav1.MicroTime `json:"acquireTime,omitempty"`
	RenewTime            *metav1.MicroTime `json:"renewTime,omitempty"`
	LeaseTransitions     *int32            `json:"leaseTransitions,omitempty"`
	Strategy             *Strategy         `json:"strategy,omitempty"`
	PreferredHolder      *string           `json:"preferredHolder,omitempty"`
}

// Strategy mirrors coordinationv1.CoordinatedLeaseStrategy.
type Strategy string

// Probe mirrors corev1.Probe, whose handler is inline in JSON.
type Probe struct {
	ProbeHandler                  `json:",inline"`
	InitialDelaySeconds           int32  `json:"initialDelaySeconds,omitempty"`
	TimeoutSeconds                int32  `json:"timeoutSeconds,omitempty"`
	PeriodSeconds                 int32  `json:"periodSeconds,omitempty"`
	SuccessThreshold              int32  `json:"successThreshold,omitempty"`
	FailureThreshold              int32  `json:"failureThreshold,omitempty"`
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

// ProbeHandler mirrors corev1.ProbeHandler.
type ProbeHandler struct {
	Exec      *ExecAction             `json:"exec,omitempty"`
	HTTPGet   *HTTPGetAction          `json:"httpGet,omitempty"`
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC      *corev1.GRPCAction      `json:"grpc,omitempty"`
}

// ExecAction mirrors corev1.ExecAction.
type ExecAction struct {
	Command []string `json:"command,omitempty"`
}

// HTTPGetAction mirrors corev1.HTTPGetAction.
type HTTPGetAction struct {
	Path        string               `json:"path,omitempty"`
	Port        intstr.IntOrString   `json:"port"`
	Host        string               `json:"host,omitempty"`
	Scheme      corev1.URIScheme     `json:"scheme,omitempty"`
	HTTPHeaders []HTTPHeader         `json:"httpHeaders,omitempty"`
	Protocol    *corev1.HTTPProtocol `json:"protocol,omitempty"`
}

// HTTPHeader mirrors corev1.HTTPHeader.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ResourceRequirements mirrors corev1.ResourceRequirements.
type ResourceRequirements struct {
	Limits   corev1.ResourceList                       `json:"limits,omitempty"`
	Requests map[corev1.ResourceName]resource.Quantity `json:"requests,omitempty"`
	Claims   []corev1.ResourceClaim                    `json:"claims,omitempty"`
}

// SecurityContext mirrors corev1.PodSecurityContext up to its eighth field.
type SecurityContext struct {
	SELinuxOptions     *corev1.SELinuxOptions                `json:"seLinuxOptions,omitempty"`
	RunAsUser          *int64                                `json:"runAsUser,omitempty"`
	RunAsNonRoot       *bool                                 `json:"runAsNonRoot,omitempty"`
	SupplementalGroups []int64                               `json:"supplementalGroups,omitempty"`
	FSGroup            *int64                                `json:"fsGroup,omitempty"`
	RunAsGroup         *int64                                `json:"runAsGroup,omitempty"`
	Sysctls            []corev1.Sysctl                       `json:"sysctls,omitempty"`
	WindowsOptions     *corev1.WindowsSecurityContextOptions `json:"windowsOptions,omitempty"`
}

// Forms has what the others do not have.
type Forms struct {
	On       bool                  `json:"on"`
	Int      int                   `json:"int"`
	Unsigned uint64                `json:"unsigned"`
	Ratio    float64               `json:"ratio"`
	Rough    *float32              `json:"rough,omitempty"`
	Ratios   []float64             `json:"ratios,omitempty"`
	Flags    []bool                `json:"flags,omitempty"`
	Rough32  []float32             `json:"rough32,omitempty"`
	Blob     []byte                `json:"blob,omitempty"`
	Blobs    [][]byte              `json:"blobs,omitempty"`
	ByNumber map[int32]bool        `json:"byNumber,omitempty"`
	ByName   map[string]HTTPHeader `json:"byName,omitempty"`
	Sizes    map[string]float64    `json:"sizes,omitempty"`
	Next     *Forms                `json:"next,omitempty"`
	Nested   []Forms               `json:"nested,omitempty"`
	Raw      *runtime.RawExtension `json:"raw,omitempty"`
	Every    metav1.Duration       `json:"every"`
	At       metav1.Time           `json:"at"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	Far      string                `json:"far" protobuf:"bytes,300,opt,name=far"`
}
