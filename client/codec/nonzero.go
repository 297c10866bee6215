// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
)

// NonZero is the JSON form of a Go object without its zero values. A field
// that is zero is left out, whatever its tags say; so is a struct of which
// nothing remains, and an empty map or list whose tag says omitempty. What a
// pointer points to, a map holds or a list holds was put there on purpose and
// stays, zero or not.
func NonZero(obj any) (map[string]any, error) {
	v := reflect.ValueOf(obj)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, fmt.Errorf("encode %T: nil", obj)
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("encode %T: not a struct", obj)
	}
	out := map[string]any{}
	if err := addFields(out, v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return out, nil
}

func addFields(out map[string]any, v reflect.Value) error {
	t := v.Type()
	for i := range t.NumField() {
		value := v.Field(i)
		if value.IsZero() { // most fields are; an embedded struct then has none to add
			continue
		}
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if field.Anonymous && name == "" {
			for value.Kind() == reflect.Pointer && !value.IsNil() {
				value = value.Elem()
			}
			if value.Kind() == reflect.Struct {
				if err := addFields(out, value); err != nil {
					return err
				}
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		if isEmptyOption(value, options) {
			continue
		}
		encoded, err := nonZero(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if m, ok := encoded.(map[string]any); ok && len(m) == 0 && value.Kind() == reflect.Struct {
			continue
		}
		out[name] = encoded
	}
	return nil
}

// isEmptyOption reports whether encoding/json leaves a map or a list out.
func isEmptyOption(v reflect.Value, options string) bool {
	if k := v.Kind(); k != reflect.Map && k != reflect.Slice || v.Len() > 0 {
		return false
	}
	for option := range strings.SplitSeq(options, ",") {
		if option == "omitempty" {
			return true
		}
	}
	return false
}

func nonZero(v reflect.Value) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	if ownJSON(v) {
		return throughJSON(v)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return nonZero(v.Elem())
	case reflect.Struct:
		out := map[string]any{}
		return out, addFields(out, v)
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String || v.IsNil() {
			return throughJSON(v)
		}
		out := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			encoded, err := nonZero(it.Value())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", it.Key(), err)
			}
			out[it.Key().String()] = encoded
		}
		return out, nil
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return throughJSON(v) // base64
		}
		out := make([]any, 0, v.Len())
		for i := range v.Len() {
			encoded, err := nonZero(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out = append(out, encoded)
		}
		return out, nil
	}
	return throughJSON(v)
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// ownJSON says that the type writes itself: times, quantities, int-or-strings.
func ownJSON(v reflect.Value) bool {
	t := v.Type()
	if t.Kind() == reflect.Interface {
		return false
	}
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) ||
		t.Kind() != reflect.Pointer && (reflect.PointerTo(t).Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(textMarshaler))
}

func throughJSON(v reflect.Value) (any, error) {
	if v.Kind() != reflect.Pointer {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p
	}
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, err
	}
	var out any
	return out, kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
}
