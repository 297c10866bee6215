package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GuestbookSpec is the desired state of a Guestbook.
type GuestbookSpec struct {
	// Foo is an example: replace it with fields of your own, then run make generate.
	// +optional
	Foo string `json:"foo,omitempty"`
}

// GuestbookStatus is the observed state of a Guestbook.
type GuestbookStatus struct {
	// ObservedGeneration is the generation that the controller acted on last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the Guestbook, such as Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Guestbook is the schema of the guestbooks API.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GuestbookSpec   `json:"spec,omitempty"`
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookList is a list of Guestbook objects.
// +kubebuilder:object:root=true
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Guestbook `json:"items"`
}
