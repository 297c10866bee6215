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

// Decode reads JSON that was written from the Go type that it is read into, which is
// empty, as sigs.k8s.io/json does: in one pass where the type is direct. Texts of what
// is read may share the memory of value, which must not change any more.
func Decode(value []byte, into any) error {
	if DecodeStrictly(value, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero() // some of it may have been read
	if !direct(reflect.TypeOf(into)) {
		return kjson.UnmarshalCaseSensitivePreserveInts(value, into)
	}
	return json.Unmarshal(value, into, jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false), jsonv1.MatchCaseSensitiveDelimiter(false), jsonv1.ReportErrorsWithLegacySemantics(false))
}

// Encode writes a Go value as encoding/json does, with less work. whole tells that
// protobuf has nothing of the value that it would not have of what is read again; it is
// not always told.
func Encode(from any) (value []byte, whole bool, err error) {
	if plan := typed.Of(from); plan != nil {
		return plan.Write(from)
	}
	value, err = jsonv1.Marshal(from)
	return value, false, err
}

// DecodeStrictly reads JSON that anybody wrote into an empty object, in one pass, if
// there is nothing to say about it: no field is unknown or there twice, and nothing is
// out of the usual. false means that the library is to read or explain it; what into
// is then does not matter. Texts of it share the memory of value, which must not
// change any more.
func DecodeStrictly(value []byte, into any) bool {
	plan := typed.Of(into)
	return plan != nil && plan.Read(value, into)
}

// directTypes remembers the answers of direct: reflect.Type -> bool. Types are
// finitely many and an answer never changes.
var directTypes sync.Map

// direct reports whether all readers agree on how a type is read. They differ on
// interfaces, arrays, and names and options of fields that are out of the usual.
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
		return true // it reads itself
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
