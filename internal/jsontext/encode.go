// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Marshal encodes decoded JSON to the bytes of encoding/json, with sorted keys, but
// without reflection. Members may be raw.
//
//steer:fast decode
func Marshal(value map[string]any) ([]byte, error) {
	size := 1024
	for _, member := range value {
		if text, ok := member.(Text); ok {
			size += len(text)
		}
	}
	return appendValue(make([]byte, 0, size), value)
}

// AppendValue appends the encoding of a decoded JSON value.
func AppendValue(out []byte, value any) ([]byte, error) { return appendValue(out, value) }

func appendValue(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case string:
		return appendString(out, v)
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case Text:
		return append(out, v...), nil
	case map[string]any:
		return appendMap(out, v)
	case []any:
		if v == nil {
			return append(out, "null"...), nil
		}
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendValue(out, element); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
	raw, err := json.Marshal(value)
	return append(out, raw...), err
}

func appendMap(out []byte, v map[string]any) ([]byte, error) {
	if v == nil {
		return append(out, "null"...), nil
	}
	var few [32]string
	keys := few[:0]
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out = append(out, '{')
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendString(out, k); err != nil {
			return nil, err
		}
		out = append(out, ':')
		if out, err = appendValue(out, v[k]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// AppendText appends the encoding of a string.
func AppendText(out []byte, text string) []byte {
	out, _ = appendString(out, text) // cannot fail for a string
	return out
}

// AppendName appends the name of a member of an object whose members begin at begin.
func AppendName(out []byte, begin int, name string) []byte {
	if len(out) > begin {
		out = append(out, ',')
	}
	return append(AppendText(out, name), ':')
}

// appendString appends a string; encoding/json escapes it if needed.
func appendString(out []byte, s string) ([]byte, error) {
	if !PlainText(s) {
		raw, err := json.Marshal(s)
		return append(out, raw...), err
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"'), nil
}
