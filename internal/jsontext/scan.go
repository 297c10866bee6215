// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsontext is the text of API objects: JSON.
//
// [Find], [Fields] and what is made of them read stored bytes without decoding them; they trust
// that an encoder wrote them, and find nothing in other input, but never panic. [Unmarshal],
// [Members] and [Canonicalize] parse what clients send, and trust nothing. [Text] is canonical
// text, which a [Reader] walks over, and [Marshal] and [AppendText] write.
package jsontext

import (
	"bytes"
	"encoding/json"
	"iter"
	"unsafe"
)

// Find returns the raw value under a path of object keys: value[start:end]. Without
// keys it is the whole value.
//
//steer:fast decode
func Find(value []byte, keys ...string) (start, end int, ok bool) {
	start = skipSpace(value, 0)
	end = len(value)
	for _, key := range keys {
		f := fieldsOf(value, start)
		for f.key != key || f.at.end == 0 {
			if !f.advance() {
				return 0, 0, false
			}
		}
		start, end = f.at.start, f.at.end
	}
	return start, end, start < len(value)
}

// Raw is [Find], but returns the bytes.
func Raw(value []byte, keys ...string) []byte {
	start, end, ok := Find(value, keys...)
	if !ok {
		return nil
	}
	return value[start:end]
}

// String returns the string under a path, and "" when there is none.
func String(value []byte, keys ...string) string {
	start, _, ok := Find(value, keys...)
	if !ok || value[start] != '"' {
		return ""
	}
	s, _, _ := text(value, start)
	return s
}

// Fields yields the fields of the object under a path.
func Fields(value []byte, keys ...string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		start, _, ok := Find(value, keys...)
		if !ok {
			return
		}
		for f := fieldsOf(value, start); f.advance(); {
			if !yield(f.key, value[f.at.start:f.at.end]) {
				return
			}
		}
	}
}

// Elements yields the elements of a list.
func Elements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := skipSpace(list, 0); i < len(list) && (list[i] == '[' || list[i] == ','); {
			begin := skipSpace(list, i+1)
			end := Skip(list, begin)
			if end < 0 || !yield(list[begin:end]) {
				return
			}
			i = skipSpace(list, end)
		}
	}
}

// Scalar returns the string, number or boolean under a path in string form, as field
// selectors compare it; "" if there is none.
func Scalar(value []byte, keys ...string) string {
	raw := Raw(value, keys...)
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		s, _, _ := text(raw, 0)
		return s
	case '{', '[', 'n':
		return ""
	}
	return string(raw)
}

type span struct{ start, end int }

// fields iterates over the fields of an object.
type fields struct {
	value []byte
	next  int // the start of the next key; -1 at the end
	key   string
	at    span // of the value of the key
}

// fieldsOf starts an iteration over the object at start.
func fieldsOf(value []byte, start int) fields {
	if start >= len(value) || value[start] != '{' {
		return fields{next: -1}
	}
	return fields{value: value, next: skipSpace(value, start+1)}
}

// advance moves to the next field; false at the end, or if the input is not JSON.
func (f *fields) advance() bool {
	if f.next < 0 || f.next >= len(f.value) || f.value[f.next] != '"' {
		return false
	}
	key, i, ok := text(f.value, f.next)
	if !ok {
		return false
	}
	i = skipSpace(f.value, i)
	if i >= len(f.value) || f.value[i] != ':' {
		return false
	}
	i = skipSpace(f.value, i+1)
	end := Skip(f.value, i)
	if end < 0 {
		return false
	}
	f.key, f.at = key, span{i, end}
	f.next = -1
	if i = skipSpace(f.value, end); i < len(f.value) && f.value[i] == ',' {
		f.next = skipSpace(f.value, i+1)
	}
	return true
}

func skipSpace(value []byte, i int) int {
	for i < len(value) && (value[i] == ' ' || value[i] == '\n' || value[i] == '\t' || value[i] == '\r') {
		i++
	}
	return i
}

// Skip returns the end of the value that starts at i, or -1.
func Skip(value []byte, i int) int {
	if i >= len(value) {
		return -1
	}
	switch value[i] {
	case '"':
		return skipText(value, i)
	case '{', '[':
		depth := 0
		for i < len(value) {
			switch value[i] {
			case '"':
				if i = skipText(value, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(value) {
		switch value[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			if i == start {
				return -1
			}
			return i
		}
		i++
	}
	return i
}

// skipText returns the end of the string literal at i, or -1.
func skipText(value []byte, i int) int {
	start := i + 1
	for i = start; i <= len(value); i++ {
		quote := bytes.IndexByte(value[i:], '"')
		if quote < 0 {
			return -1
		}
		i += quote
		escapes := 0
		for i-1-escapes >= start && value[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
	return -1
}

// text returns the string literal at i. Without escapes it shares the memory of value,
// which must not be changed.
func text(value []byte, i int) (s string, end int, ok bool) {
	end = skipText(value, i)
	if end < 0 {
		return "", 0, false
	}
	inner := value[i+1 : end-1]
	switch {
	case len(inner) == 0:
		return "", end, true
	case bytes.IndexByte(inner, '\\') >= 0:
		s, ok = unescape(value[i:end])
		return s, end, ok
	}
	return unsafe.String(&inner[0], len(inner)), end, true
}

func unescape(literal []byte) (string, bool) {
	var s string
	err := json.Unmarshal(literal, &s)
	return s, err == nil
}
