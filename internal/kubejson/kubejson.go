// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubejson decodes Kubernetes' dialect of JSON into Go types, for client and
// server alike. The dialect is what sigs.k8s.io/json reads: encoding/json with names that
// are case-sensitive, and whole numbers in untyped places as int64. That library reads
// its input twice; a decoder of one pass gives the same for most types, and [OnePass] says
// for which. It is short because it is one question and the two decoders that it decides
// between.
package kubejson

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	kjson "sigs.k8s.io/json"
)

// Unmarshal decodes the whole of data into a pointer to an empty value. After an error the
// value is undefined.
func Unmarshal(data []byte, into any) error {
	if !OnePass(reflect.TypeOf(into)) {
		return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	}
	return json.Unmarshal(data, into, Options())
}

// Options of the decoder of one pass. They give the dialect for the types that OnePass
// reports. The first mistake ends decoding.
func Options() json.Options {
	return json.JoinOptions(
		jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false),
		jsonv1.MatchCaseSensitiveDelimiter(false),
		jsonv1.ReportErrorsWithLegacySemantics(false),
	)
}

// types caches the answers of OnePass: reflect.Type -> bool. The number of types is
// bounded and an answer never changes.
var types sync.Map

// OnePass reports whether the decoder of one pass and sigs.k8s.io/json agree on a type.
// They differ on interfaces, whose numbers are int64 or float64, on arrays, and on
// unusual names and options of fields.
func OnePass(t reflect.Type) bool {
	if known, ok := types.Load(t); ok {
		return known.(bool)
	}
	ok := agree(t, map[reflect.Type]bool{})
	types.Store(t, ok)
	return ok
}

func agree(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[stdjson.Unmarshaler]()) {
		return true // it decodes itself, the same way for both
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float64, reflect.Float32,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer, reflect.Slice:
		return agree(t.Elem(), seen)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && agree(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if !agreeOnField(t.Field(i), seen) {
				return false
			}
		}
		return true
	}
	return false
}

func agreeOnField(f reflect.StructField, seen map[reflect.Type]bool) bool {
	tag, tagged := f.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	embedded := f.Anonymous && name == ""
	switch {
	case tag == "-":
		return true
	case !f.IsExported():
		return !f.Anonymous
	case embedded && f.Type.Kind() != reflect.Struct: // both look inside structs, and only there alike
		return false
	case !embedded && (!tagged || name == "" || strings.ContainsAny(name, "'\"\\`")):
		return false
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero":
		case "inline":
			if !embedded {
				return false
			}
		default:
			return false
		}
	}
	return agree(f.Type, seen)
}
