// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"errors"
	"strconv"
)

// ErrNoRevision: an object to be stored has no metadata.resourceVersion that the store
// could replace.
var ErrNoRevision = errors.New("jsontext: the encoded object has no metadata.resourceVersion")

// Placeholder is the resourceVersion that an object must be encoded with before [Open].
const Placeholder = "0"

// Open removes the placeholder revision from an encoded object and returns the bytes
// without it and the offset at which the store inserts the revision. It reuses the
// memory of value.
func Open(value []byte) (opened []byte, stamp int, err error) {
	start, end, ok := Find(value, "metadata", "resourceVersion")
	if !ok || end-start != len(Placeholder)+2 {
		return nil, 0, ErrNoRevision
	}
	stamp = start + 1
	return append(value[:stamp], value[end-1:]...), stamp, nil
}

// Restamp returns a copy of an object with another revision: the digits at stamp are
// replaced.
func Restamp(value []byte, stamp int, revision int64) []byte {
	end := stamp
	for end < len(value) && value[end] >= '0' && value[end] <= '9' {
		end++
	}
	out := make([]byte, 0, len(value)+20)
	out = append(out, value[:stamp]...)
	out = strconv.AppendInt(out, revision, 10)
	return append(out, value[end:]...)
}

// Untyped returns an encoded object without its leading type, as items of typed lists
// have it; other objects are returned unchanged. The result is two slices of value, to
// be written one after the other.
func Untyped(value []byte) (open, rest []byte) {
	if len(value) == 0 {
		return nil, nil
	}
	i, seen := 1, 0
	for seen < 2 {
		key, next, ok := textAt(value, i)
		if !ok || (key != "kind" && key != "apiVersion") || next >= len(value) || value[next] != ':' {
			return nil, value
		}
		end := Skip(value, next+1)
		if end < 0 || end >= len(value) || value[end] != ',' {
			return nil, value
		}
		i = end + 1
		seen++
	}
	return value[:1], value[i:]
}

func textAt(value []byte, i int) (string, int, bool) {
	if i >= len(value) || value[i] != '"' {
		return "", 0, false
	}
	return text(value, i)
}
