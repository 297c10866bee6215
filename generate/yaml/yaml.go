// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package yaml writes YAML in the style of go-yaml v2, byte for byte, without
// building the document in memory first.
//
// Kubernetes manifests are kept in version control and compared by bytes, so the
// style is a contract: keys in natural order, two spaces of indentation, sequences
// not indented in mappings, text folded at 80 columns, literal blocks for text of
// several lines, quotes only where the text would otherwise mean something else.
// What is rare (control characters, text that looks like a timestamp) is handed to
// the library itself, so the two cannot disagree there; a test compares the rest.
package yaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	sigsyaml "sigs.k8s.io/yaml"
)

// width is the column after which text is folded.
const width = 80

// Indent appends the start of a line at a column.
func Indent(dst []byte, column int) []byte {
	for range column {
		dst = append(dst, ' ')
	}
	return dst
}

// Key appends "key:" at a column; a value or a line break follows.
func Key(dst []byte, column int, key string) []byte {
	dst = Indent(dst, column)
	switch a := analyse(key); {
	case a.special || a.lines || !plain(key):
		dst = quoted(dst, key)
	case a.plain:
		dst = append(dst, key...)
	default:
		dst = append(append(append(dst, '\''), strings.ReplaceAll(key, "'", "''")...), '\'')
	}
	return append(dst, ':')
}

// String appends " value" and a line break. Column is that of the key, or of the
// dash, that the value follows.
func String(dst []byte, column int, value string) []byte {
	at := utf8.RuneCount(dst[bytes.LastIndexByte(dst, '\n')+1:])
	dst = append(dst, ' ')
	return append(scalar(dst, at+1, column+2, value), '\n')
}

// Value appends any JSON-like value (nil, bool, string, json.Number, []any,
// map[string]any) after "key:" at the column, line break included.
func Value(dst []byte, column int, value any) []byte {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			return append(dst, " {}\n"...)
		}
		return Mapping(append(dst, '\n'), column+2, value)
	case []any:
		if len(value) == 0 {
			return append(dst, " []\n"...)
		}
		dst = append(dst, '\n')
		for _, item := range value {
			dst = Item(dst, column, item)
		}
		return dst
	case string:
		return String(dst, column, value)
	default:
		dst = append(dst, ' ')
		return append(atom(dst, value), '\n')
	}
}

// Mapping appends the entries of a map at a column.
func Mapping(dst []byte, column int, entries map[string]any) []byte {
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, Compare)
	for _, key := range keys {
		dst = Value(Key(dst, column, key), column, entries[key])
	}
	return dst
}

// Item appends one item of a sequence whose dashes stand at a column.
func Item(dst []byte, column int, value any) []byte {
	dst = append(Indent(dst, column), '-')
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			return append(dst, " {}\n"...)
		}
		return inline(dst, column, Mapping(nil, column+2, value))
	case []any:
		if len(value) == 0 {
			return append(dst, " []\n"...)
		}
		var nested []byte
		for _, item := range value {
			nested = Item(nested, column+2, item)
		}
		return inline(dst, column, nested)
	case string:
		return String(dst, column, value)
	default:
		dst = append(dst, ' ')
		return append(atom(dst, value), '\n')
	}
}

// inline appends a block that was written for the column after a dash, putting
// its first line beside the dash.
func inline(dst []byte, column int, block []byte) []byte {
	return append(append(dst, ' '), block[column+2:]...)
}

// atom appends null, a boolean or a number.
func atom(dst []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, value)
	case int64:
		return strconv.AppendInt(dst, value, 10)
	case float64:
		return Number(dst, value)
	case json.Number:
		return number(dst, value.String())
	}
	return fmt.Append(dst, value)
}

// Number appends a number as it comes out of JSON: integers without a fraction
// stay integers.
func Number(dst []byte, value float64) []byte {
	if value == math.Trunc(value) && math.Abs(value) < 1e21 {
		return number(dst, strconv.FormatFloat(value, 'f', -1, 64))
	}
	return strconv.AppendFloat(dst, value, 'g', -1, 64)
}

func number(dst []byte, text string) []byte {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.AppendInt(dst, n, 10)
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return strconv.AppendUint(dst, n, 10)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return append(dst, text...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// scalar appends text whose first character stands at a column; lines that follow
// start at indent.
func scalar(dst []byte, at, indent int, text string) []byte {
	a := analyse(text)
	switch {
	case a.special:
		return delegate(dst, at, indent, text)
	case a.lines:
		if a.trailingSpace || a.spaceBreak {
			return delegate(dst, at, indent, text)
		}
		return literal(dst, indent, text)
	case !plain(text):
		return quoted(dst, text)
	case a.plain:
		return folded(dst, at, indent, text, false)
	default:
		dst = append(dst, '\'')
		dst = folded(dst, at+1, indent, text, true)
		return append(dst, '\'')
	}
}

// analysis is what decides how a text can be written.
type analysis struct {
	plain         bool // without quotes, structurally
	lines         bool // several lines
	special       bool // characters that need escapes
	trailingSpace bool
	spaceBreak    bool // a space before a line break
}

func analyse(text string) analysis {
	a := analysis{plain: true}
	if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
		a.plain = false
	}
	blankBefore := true
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		blankAfter := next >= len(text) || text[next] == ' ' || text[next] == '\n' || text[next] == '\t'
		switch {
		case r == '\n':
			a.lines, a.plain = true, false
			if i > 0 && text[i-1] == ' ' {
				a.spaceBreak = true
			}
		case r < ' ' || r == 0x7f || r >= 0x80 && !printable(r):
			a.special = true
			return a
		case r == ' ':
			if i == 0 {
				a.plain = false
			}
			if next == len(text) {
				a.trailingSpace, a.plain = true, false
			}
		case i == 0 && strings.ContainsRune("#,[]{}&*!|>'\"%@`", r):
			a.plain = false
		case i == 0 && (r == '?' || r == ':' || r == '-') && blankAfter:
			a.plain = false
		case r == ':' && blankAfter, r == '#' && blankBefore:
			a.plain = false
		}
		blankBefore = r == ' ' || r == '\n'
	}
	return a
}

// printable reports whether a character outside ASCII needs no escape.
func printable(r rune) bool {
	switch {
	case r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == utf8.RuneError, r > 0xffff:
		return false
	}
	return r < 0xd800 || r >= 0xe000 && r < 0xfffe
}

// folded writes plain text, or the inside of single quotes, breaking lines at
// single spaces past the width.
func folded(dst []byte, at, indent int, text string, quotes bool) []byte {
	if at+len(text) <= width+1 && !quotes {
		return append(dst, text...)
	}
	spaces := false
	for i := range len(text) {
		c := text[i]
		if c != ' ' {
			if c == '\'' && quotes {
				dst = append(dst, c)
				at++
			}
			dst = append(dst, c)
			if utf8.RuneStart(c) {
				at++
			}
			spaces = false
			continue
		}
		single := !spaces && (i+1 >= len(text) || text[i+1] != ' ')
		if quotes && (i == 0 || i == len(text)-1) {
			single = false
		}
		if single && at > width {
			dst = Indent(append(dst, '\n'), indent)
			at = indent
		} else {
			dst = append(dst, c)
			at++
		}
		spaces = true
	}
	return dst
}

// literal writes text of several lines as a block.
func literal(dst []byte, indent int, text string) []byte {
	dst = append(dst, '|')
	if text[0] == ' ' || text[0] == '\n' {
		dst = append(dst, '2')
	}
	switch {
	case !strings.HasSuffix(text, "\n"):
		dst = append(dst, '-')
	case len(text) == 1 || strings.HasSuffix(text, "\n\n"):
		dst = append(dst, '+')
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		dst = append(dst, '\n')
		if line != "" {
			dst = append(Indent(dst, indent), line...)
		}
	}
	return dst
}

// quoted writes short text in double quotes.
func quoted(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, `""`...)
	}
	return append(dst, strings.TrimSuffix(marshal(text), "\n")...)
}

// plain reports whether text without quotes would be read back as that text.
func plain(text string) bool {
	if text == "" {
		return false
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9', c == '.', c == '+', c == '-':
		if len(text) > 40 && strings.Contains(text, " ") { // longer than a time, and no number has spaces
			return true
		}
		if c >= '0' && c <= '9' && strings.IndexFunc(text, unicode.IsLetter) < 0 && !strings.ContainsAny(text, " /") {
			break
		}
	default:
		return !isWord11(text)
	}
	return marshal(text)[0] != '"'
}

// isWord11 reports whether YAML 1.1 takes a text for a boolean, null or a merge.
func isWord11(text string) bool {
	switch text {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE",
		"n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE",
		"~", "null", "Null", "NULL", "<<":
		return true
	}
	return false
}

// marshal is the library's word on a text that stands alone.
func marshal(text string) string {
	out, err := sigsyaml.Marshal(text)
	if err != nil {
		return strconv.Quote(text) + "\n"
	}
	return string(out)
}

// delegate lets the library write the text, at the same depth behind a key that
// ends at the same column.
func delegate(dst []byte, at, indent int, text string) []byte {
	key := strings.Repeat("k", at-indent) + ": "
	var doc any = map[string]any{strings.TrimSuffix(key, ": "): text}
	if at == indent {
		key, doc = "- ", map[string]any{"m": []any{text}}
	}
	for range (indent - 2) / 2 {
		doc = map[string]any{"m": doc}
	}
	out, err := sigsyaml.Marshal(doc)
	if err != nil {
		return append(dst, strconv.Quote(text)...)
	}
	_, value, _ := strings.Cut(string(out), key)
	return append(dst, strings.TrimSuffix(value, "\n")...)
}
