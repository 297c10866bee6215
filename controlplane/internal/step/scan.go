// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import "iter"

// Member returns the value of a member of a JSON object as it is written, or
// nil. The object must be valid JSON in the form that the server stores: without
// space between its parts.
func Member(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for i := 1; i < len(object) && object[i] == '"'; {
		keyEnd := skip(object, i)
		if keyEnd >= len(object) || object[keyEnd] != ':' {
			return nil
		}
		valueEnd := skip(object, keyEnd+1)
		if string(object[i+1:keyEnd-1]) == name {
			return object[keyEnd+1 : valueEnd]
		}
		if valueEnd >= len(object) || object[valueEnd] != ',' {
			return nil
		}
		i = valueEnd + 1
	}
	return nil
}

// Elements yields the elements of a JSON array in the same form.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		for i := 1; i < len(array) && array[i] != ']'; {
			end := skip(array, i)
			if !yield(array[i:end]) || end >= len(array) || array[end] != ',' {
				return
			}
			i = end + 1
		}
	}
}

// skip returns where the JSON value that begins at i ends.
func skip(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // the end of what the value stands in
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(text))
		}
	}
	return len(text)
}
