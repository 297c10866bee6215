// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// dialect is Kubernetes' dialect of JSON, as sigs.k8s.io/json reads it:
// encoding/json with case-sensitive names, and whole numbers in untyped places
// as int64. The one-pass decoder speaks it with these options; types on which
// the two differ (see onePass) go the slower way. Lean leaves managedFields out.
func dialect(lean bool) json.Options {
	options := json.JoinOptions(
		jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false),
		jsonv1.MatchCaseSensitiveDelimiter(false),
		// One pass only: the first mistake ends decoding.
		jsonv1.ReportErrorsWithLegacySemantics(false),
	)
	if !lean {
		return options
	}
	return json.JoinOptions(options, json.WithUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *[]metav1.ManagedFieldsEntry) error {
			return dec.SkipValue()
		})))
}

// newDecoder reads the tokens of the dialect.
func newDecoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// UnmarshalJSON decodes data in Kubernetes' dialect of JSON into a pointer to any Go
// type: names are case-sensitive, and whole numbers in untyped places become int64.
func UnmarshalJSON(data []byte, into any) error { return unmarshalJSON(data, into) }

// unmarshalJSON decodes the whole of data.
func unmarshalJSON(data []byte, into any) error {
	if m, ok := into.(*map[string]any); ok {
		return unmarshalMap(data, m)
	}
	if !onePass(reflect.TypeOf(into)) {
		return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	}
	return json.Unmarshal(data, into, dialect(false))
}

func unmarshalMap(data []byte, into *map[string]any) error {
	u := untyped{dec: newDecoder(bytes.NewReader(data))}
	m, err := u.object()
	if err != nil {
		return err
	}
	if err := u.end(); err != nil {
		return err
	}
	*into = m
	return nil
}

// onePassTypes remembers the answers of onePass: reflect.Type -> bool. Types
// are finitely many and an answer never changes.
var onePassTypes sync.Map

// onePass says that the one-pass decoder and sigs.k8s.io/json agree on t. They
// differ on interface fields (int64 or float64), and on tag options that one
// knows and the other ignores.
func onePass(t reflect.Type) bool {
	if known, ok := onePassTypes.Load(t); ok {
		return known.(bool)
	}
	ok := agrees(t, map[reflect.Type]bool{})
	onePassTypes.Store(t, ok)
	return ok
}

var (
	jsonUnmarshaler = reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func agrees(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(jsonUnmarshaler) {
		return true // decodes itself, the same way for both
	}
	switch t.Kind() {
	case reflect.Interface, reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.Array:
		return false
	case reflect.Pointer, reflect.Slice:
		return agrees(t.Elem(), seen)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(textUnmarshaler) && agrees(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if !fieldAgrees(t.Field(i), seen) {
				return false
			}
		}
	}
	return true
}

func fieldAgrees(f reflect.StructField, seen map[reflect.Type]bool) bool {
	tag, tagged := f.Tag.Lookup("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return true
	}
	name, options, _ := strings.Cut(tag, ",")
	if f.Anonymous && name == "" {
		// Embedded: both look inside structs, and only there alike.
		if f.Type.Kind() != reflect.Struct || !f.IsExported() {
			return false
		}
	} else if !tagged || name == "" || strings.ContainsAny(name, "'\"\\`") {
		return false
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero":
		case "inline":
			if !f.Anonymous {
				return false
			}
		default:
			return false
		}
	}
	return agrees(f.Type, seen)
}
