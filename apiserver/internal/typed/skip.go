// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"github.com/steer-dev/steer/internal/jsontext"
)

import "strings"

// maxDepth is the nesting depth up to which JSON is decoded here.
const maxDepth = 500

// skipCompact returns the end of a compact value that begins at i; -1 if it has white
// space or is not JSON.
func skipCompact(raw []byte, i, depth int) int {
	if i >= len(raw) || depth > maxDepth {
		return -1
	}
	switch c := raw[i]; {
	case c == '"':
		return skipText(raw, i)
	case c == '{' || c == '[':
		return skipMembers(raw, i, depth, c)
	case c == '-' || c >= '0' && c <= '9':
		return skipInteger(raw, i)
	}
	for _, word := range []string{"true", "false", null} {
		if len(raw)-i >= len(word) && string(raw[i:i+len(word)]) == word {
			return i + len(word)
		}
	}
	return -1
}

// skipMembers is skipCompact for an object or a list.
func skipMembers(raw []byte, i, depth int, open byte) int {
	closing := open + 2 // in ASCII, of both
	if i++; i < len(raw) && raw[i] == closing {
		return i + 1
	}
	for {
		if open == '{' {
			if i >= len(raw) || raw[i] != '"' {
				return -1
			}
			if i = skipText(raw, i); i < 0 || i >= len(raw) || raw[i] != ':' {
				return -1
			}
			i++
		}
		if i = skipCompact(raw, i, depth+1); i < 0 || i >= len(raw) {
			return -1
		}
		switch raw[i] {
		case closing:
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}

func skipText(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = skipEscape(raw, i+1); i < 0 {
				return -1
			}
		case !jsontext.PlainByte(c):
			return -1
		}
	}
	return -1
}

// skipEscape returns the last position of an escape sequence.
func skipEscape(raw []byte, i int) int {
	switch {
	case i >= len(raw):
	case strings.IndexByte(`"\/bfnrt`, raw[i]) >= 0:
		return i
	case raw[i] == 'u' && len(raw)-i > 4:
		for _, c := range raw[i+1 : i+5] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return -1
			}
		}
		return i + 4
	}
	return -1
}

func skipInteger(raw []byte, i int) int {
	if raw[i] == '-' {
		i++
	}
	from := i
	for i < len(raw) && raw[i] >= '0' && raw[i] <= '9' {
		i++
	}
	if i == from || raw[from] == '0' && i > from+1 {
		return -1
	}
	return i
}
