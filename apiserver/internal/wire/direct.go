// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/typed"
)

// Decode decodes JSON that was encoded from the Go type of into, which must be empty,
// as sigs.k8s.io/json does: in one pass if the type is direct. Strings may share the
// memory of value, which must not be changed any more.
func Decode(value []byte, into any) error {
	if DecodeStrictly(value, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero() // some fields may be set already
	if !direct(reflect.TypeOf(into)) {
		return kjson.UnmarshalCaseSensitivePreserveInts(value, into)
	}
	return json.Unmarshal(value, into, jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false), jsonv1.MatchCaseSensitiveDelimiter(false), jsonv1.ReportErrorsWithLegacySemantics(false))
}

// Encode encodes a Go value as encoding/json does, with less work. whole reports that
// decoding the JSON loses nothing that the protobuf of the value would have; it may be
// false although that holds.
func Encode(from any) (value []byte, whole bool, err error) {
	if plan := typed.Of(from); plan != nil {
		return plan.Write(from)
	}
	value, err = jsonv1.Marshal(from)
	return value, false, err
}

// DecodeStrictly decodes untrusted JSON into an empty object, in one pass, if strict
// decoding would report nothing: no unknown or duplicate field, and nothing unusual. If
// it returns false, the library must decode it or return the error; the contents of
// into are then undefined. Strings share the memory of value, which must not be changed
// any more.
func DecodeStrictly(value []byte, into any) bool {
	plan := typed.Of(into)
	return plan != nil && plan.Read(value, into)
}

// directTypes caches the results of direct: reflect.Type -> bool. The number of types
// is bounded and a result never changes.
var directTypes sync.Map

// direct reports whether all JSON decoders agree on a type. They differ on interfaces,
// arrays, and unusual names and options of fields.
func direct(t reflect.Type) bool {
	if known, ok := directTypes.Load(t); ok {
		return known.(bool)
	}
	ok := directBelow(t, map[reflect.Type]bool{})
	directTypes.Store(t, ok)
	return ok
}

func directBelow(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[stdjson.Unmarshaler]()) {
		return true // it implements json.Unmarshaler
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float64, reflect.Float32,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer, reflect.Slice:
		return directBelow(t.Elem(), seen)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && directBelow(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if !directField(t.Field(i), seen) {
				return false
			}
		}
		return true
	}
	return false
}

func directField(f reflect.StructField, seen map[reflect.Type]bool) bool {
	tag, tagged := f.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return true
	case !f.IsExported():
		return !f.Anonymous
	case f.Anonymous && name == "":
		return f.Type.Kind() == reflect.Struct && directBelow(f.Type, seen)
	case !tagged || name == "" || strings.ContainsAny(name, "'\"\\`"):
		return false
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero":
		default:
			return false
		}
	}
	return directBelow(f.Type, seen)
}
