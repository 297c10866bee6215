// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
)

// head are the members of an AdmissionRequest but for the objects, as both versions of
// AdmissionReview have them.
type head struct {
	UID                types.UID                    `json:"uid"`
	Kind               metav1.GroupVersionKind      `json:"kind"`
	Resource           metav1.GroupVersionResource  `json:"resource"`
	SubResource        string                       `json:"subResource,omitempty"`
	RequestKind        *metav1.GroupVersionKind     `json:"requestKind,omitempty"`
	RequestResource    *metav1.GroupVersionResource `json:"requestResource,omitempty"`
	RequestSubResource string                       `json:"requestSubResource,omitempty"`
	Name               string                       `json:"name,omitempty"`
	Namespace          string                       `json:"namespace,omitempty"`
	Operation          resource.Operation           `json:"operation"`
	UserInfo           authenticationv1.UserInfo    `json:"userInfo"`
}

// form is a request as webhooks of one kind see it: the encoded objects, which all of them
// share.
type form struct {
	object, old, options []byte // nil: null
}

// encodeForm encodes the objects of a request in a kind.
func encodeForm(obj, old, options runtime.Object) (f form, err error) {
	encode := func(o runtime.Object) []byte {
		var value []byte
		if known, ok := o.(resource.Object); ok && err == nil {
			value, err = resource.EncodeObject(known)
		} else if o != nil && err == nil {
			value, err = json.Marshal(o)
		}
		return value
	}
	f = form{object: encode(obj), old: encode(old), options: encode(options)}
	return f, err
}

// newReview returns the AdmissionReview that a hook is sent.
func (h *hook) newReview(uid types.UID, q *match.Request, as match.Invocation, f *form) ([]byte, error) {
	kind, in := metav1.GroupVersionKind(q.Kind), metav1.GroupVersionResource(q.GVR)
	first := head{
		UID: uid, Kind: metav1.GroupVersionKind(as.Kind), Resource: metav1.GroupVersionResource(as.Resource), SubResource: as.Subresource,
		RequestKind: &kind, RequestResource: &in, RequestSubResource: q.Subresource,
		Name: q.Name, Namespace: q.AttributedNamespace, Operation: q.Operation, UserInfo: q.User.Info(),
	}
	begin, err := json.Marshal(&first)
	if err != nil {
		return nil, err
	}
	const rest = 128 // the names of the members
	out := make([]byte, 0, len(begin)+len(f.object)+len(f.old)+len(f.options)+rest)
	out = append(out, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/`...)
	out = append(append(out, h.review...), `","request":`...)
	out = append(out, begin[:len(begin)-1]...)
	out = appendMember(out, "object", f.object)
	out = appendMember(out, "oldObject", f.old)
	out = appendMember(out, "dryRun", strconv.AppendBool(nil, q.DryRun))
	out = appendMember(out, "options", f.options)
	return append(out, "}}"...), nil
}

func appendMember(out []byte, name string, value []byte) []byte {
	out = append(append(append(out, `,"`...), name...), `":`...)
	if value == nil {
		return append(out, "null"...)
	}
	return append(out, value...)
}
