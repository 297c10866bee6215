// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

// PlainText reports whether JSON escapes nothing in a text.
func PlainText(text string) bool {
	for i := range len(text) {
		if !PlainByte(text[i]) {
			return false
		}
	}
	return true
}

// PlainByte reports whether JSON does not escape a character.
func PlainByte(c byte) bool {
	const escaped = 1<<' ' - 1 | 1<<'"' | 1<<'<' | 1<<'>' | 1<<'&' // of the first 64
	if c < 64 {
		return uint64(escaped)>>c&1 == 0
	}
	return c <= '~' && c != '\\'
}
