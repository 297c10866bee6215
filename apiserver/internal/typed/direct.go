// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"reflect"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/internal/kubejson"
)

// Decode decodes JSON that was encoded from the Go type of into, which must be empty,
// as sigs.k8s.io/json does: in one pass if it can. Strings may share the
// memory of value, which must not be changed any more.
func Decode(value []byte, into any) error {
	if DecodeFast(value, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero() // some fields may be set already
	return kubejson.Unmarshal(value, into)
}

// Encode encodes a Go value as encoding/json does, with less work. lossless reports that
// decoding the JSON loses nothing that the protobuf of the value would have; it may be
// false although that holds.
func Encode(from any) (value []byte, lossless bool, err error) {
	if plan := Of(from); plan != nil {
		return plan.Write(from)
	}
	value, err = jsonv1.Marshal(from)
	return value, false, err
}

// EncodeCanonically returns the canonical text of a Go value; false if it has none.
func EncodeCanonically(from any) (jsontext.Text, bool) {
	plan := Of(from)
	if plan == nil {
		value, err := jsonv1.Marshal(from)
		if err != nil {
			return "", false
		}
		return jsontext.Canonicalize(value)
	}
	value, canonical, err := plan.WriteSorted(from)
	switch {
	case err != nil:
		return "", false
	case canonical:
		return jsontext.View(value), true
	}
	return jsontext.Canonicalize(value)
}

// DecodeFast decodes untrusted JSON into an empty object, in one pass, if strict
// decoding would report nothing: no unknown or duplicate field, and nothing unusual. If
// it returns false, the library must decode it or return the error; the contents of
// into are then undefined. Strings share the memory of value, which must not be changed
// any more.
func DecodeFast(value []byte, into any) bool {
	plan := Of(into)
	return plan != nil && plan.Read(value, into)
}
