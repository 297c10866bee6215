// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import (
	"cmp"
	"unicode"
)

// Compare orders the keys of a mapping: letters after everything else, runs of
// digits by their number.
func Compare(a, b string) int {
	if isWord(a) && isWord(b) {
		return cmp.Compare(a, b)
	}
	x, y := []rune(a), []rune(b)
	for i := 0; i < len(x) && i < len(y); i++ {
		if x[i] == y[i] {
			continue
		}
		switch xLetter, yLetter := unicode.IsLetter(x[i]), unicode.IsLetter(y[i]); {
		case xLetter && yLetter:
			return cmp.Compare(x[i], y[i])
		case xLetter:
			return 1
		case yLetter:
			return -1
		}
		// Both numbers got a digit too many if a digit other than 0 stands
		// before them: "a10" and "a1" compare 0 to nothing.
		var lead int64
		if x[i] == '0' || y[i] == '0' {
			for j := i - 1; j >= 0 && unicode.IsDigit(x[j]); j-- {
				if x[j] != '0' {
					lead = 1
					break
				}
			}
		}
		xNumber, xEnd := digits(x, i, lead)
		yNumber, yEnd := digits(y, i, lead)
		return cmp.Or(cmp.Compare(xNumber, yNumber), cmp.Compare(xEnd, yEnd), cmp.Compare(x[i], y[i]))
	}
	return cmp.Compare(len(x), len(y))
}

func digits(text []rune, from int, number int64) (value int64, end int) {
	for end = from; end < len(text) && unicode.IsDigit(text[end]); end++ {
		number = number*10 + int64(text[end]-'0')
	}
	return number, end
}

// isWord reports whether a key consists of ASCII letters, as nearly all do.
func isWord(key string) bool {
	for i := range len(key) {
		if c := key[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}
