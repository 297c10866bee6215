// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The two reviews have Go types of their own, of what the guard asks and reads:
// those of k8s.io/api bring 0.4 MB of code, with a protobuf form, that every
// operator would keep in memory for two requests a minute.

// tokenReview asks whose token it is (authentication.k8s.io/v1).
type tokenReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Token string `json:"token,omitempty"`
	} `json:"spec"`
	Status struct {
		Authenticated bool     `json:"authenticated,omitempty"`
		User          reviewed `json:"user,omitempty"`
	} `json:"status,omitempty"`
}

// reviewed is who has a token.
type reviewed struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// accessReview asks whether a user may do something (SubjectAccessReview of
// authorization.k8s.io/v1).
type accessReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              accessQuestion `json:"spec"`
	Status            struct {
		Allowed bool `json:"allowed"`
	} `json:"status,omitempty"`
}

type accessQuestion struct {
	User                  string              `json:"user,omitempty"`
	Groups                []string            `json:"groups,omitempty"`
	Extra                 map[string][]string `json:"extra,omitempty"`
	UID                   string              `json:"uid,omitempty"`
	NonResourceAttributes accessPath          `json:"nonResourceAttributes"`
}

type accessPath struct {
	Path string `json:"path,omitempty"`
	Verb string `json:"verb,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (r *tokenReview) DeepCopyObject() runtime.Object {
	out := *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.User.Groups = slices.Clone(r.Status.User.Groups)
	out.Status.User.Extra = copyExtra(r.Status.User.Extra)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (r *accessReview) DeepCopyObject() runtime.Object {
	out := *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Groups = slices.Clone(r.Spec.Groups)
	out.Spec.Extra = copyExtra(r.Spec.Extra)
	return &out
}

func copyExtra(extra map[string][]string) map[string][]string {
	out := maps.Clone(extra)
	for key, values := range out {
		out[key] = slices.Clone(values)
	}
	return out
}

// AddToScheme makes a scheme know the kinds of the reviews.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}, &tokenReview{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}, &accessReview{})
	return nil
}
