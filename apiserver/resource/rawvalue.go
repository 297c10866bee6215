// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// RawValue is a JSON value in its canonical encoding. Objects of a [Version] with
// RawMembers set may hold it instead of maps, lists and scalars, so that a write does
// not decode members that no rule reads.
//
// Strategies, ownerships and admission of such a version receive these objects. They
// must expect a RawValue in every member of the object other than apiVersion, kind and
// metadata, and as metadata.managedFields, and must call [DecodeObject] on the object,
// or on a copy, before they use code that expects maps, DeepCopy included. All other
// code gets decoded objects: readers, subresources without a strategy, conversions
// without [Resource.RemoteConversion], [Resource.Committed].
type RawValue = wire.RawValue

// RawReader walks over a [RawValue].
type RawReader = wire.RawReader

// EncodeValue returns the canonical encoding of a decoded JSON value; ok is false if it
// has none.
func EncodeValue(value any) (raw RawValue, ok bool) { return wire.EncodeValue(value) }

// DecodeObject decodes the raw members of an object, in place. Typed objects and nil
// are left unchanged.
func DecodeObject(obj Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok && u != nil {
		wire.DecodeMembers(u.Object)
	}
}

// DecodeContent decodes the JSON of an object and leaves its members raw where they have a
// canonical encoding. The result shares the memory of text, which must not be changed any
// more.
func DecodeContent(text []byte) (content map[string]any, err error) {
	if content, plain := wire.UnmarshalRaw(text); plain {
		return content, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &content)
	return content, err
}

// DecodeMembers is [DecodeObject] for the content of an unstructured object. It reports
// whether any member was raw.
func DecodeMembers(content map[string]any) bool { return wire.DecodeMembers(content) }

// EncodeMembers encodes the members of an unstructured object that have a canonical
// encoding, in place.
func EncodeMembers(content map[string]any) { wire.EncodeMembers(content) }

// DecodedMembers returns the content of an unstructured object without raw members: the
// same map if there are none, else a copy that shares the members that are decoded
// already.
func DecodedMembers(content map[string]any) map[string]any { return wire.DecodedMembers(content) }

// Equal compares JSON values, raw or decoded. Subtrees that both share are not walked.
func Equal(a, b any) bool { return wire.Equal(a, b) }
