// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Bounds of the paths of one write.
const (
	// MaxWritten is how many paths of a write are named.
	MaxWritten = 16
	// maxWrittenBytes bounds them joined. It is less than maxText, so that no path is cut.
	maxWrittenBytes = maxText - len(",...")
	// maxNested bounds how deep a patch is looked into.
	maxNested = 64
)

// MergeFields returns the paths of the fields that a JSON merge patch, or the
// configuration of an apply, sets or removes, as for [Access.Changed]. A list is one
// field. What every object has is left out: apiVersion, kind, and of the metadata what
// names the object or its revision. What is no JSON object has no paths.
func MergeFields(patch []byte) string {
	var paths paths
	eachField(patch, func(path string) bool {
		paths.add(path)
		return !paths.more
	})
	return paths.String()
}

// PatchFields returns the paths of the fields that a JSON patch (RFC 6902) changes, as
// for [Access.Changed].
func PatchFields(patch []byte) string {
	var operations []struct{ Op, Path, From string }
	if json.Unmarshal(patch, &operations) != nil {
		return ""
	}
	var paths paths
	for _, o := range operations {
		if o.Op == "move" {
			paths.pointer(o.From)
		}
		if o.Op != "test" {
			paths.pointer(o.Path)
		}
	}
	return paths.String()
}

// Among returns those of the paths in a list, as [Differ.Changed] returns it, that a JSON
// merge patch or the configuration of an apply has: as they are, above or below.
func Among(changed string, patch []byte) string {
	if changed == "" {
		return ""
	}
	all := strings.Split(changed, ",")
	has := make([]bool, len(all))
	eachField(patch, func(field string) bool {
		for i, path := range all {
			has[i] = has[i] || path == "..." || covers(field, path) || covers(path, field)
		}
		return true
	})
	var paths paths
	for i, path := range all {
		if has[i] {
			paths.add(path)
		}
	}
	return paths.String()
}

// covers reports whether a path is another one or leads to it.
func covers(path, below string) bool {
	rest, ok := strings.CutPrefix(below, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// paths are joined within their bounds.
type paths struct {
	joined strings.Builder
	n      int
	more   bool
}

func (p *paths) add(path string) {
	if p.joined.Len() == 0 {
		p.joined.Grow(64)
	}
	switch {
	case p.more || containsPath(p.joined.String(), path):
		return
	case path == "..." || p.n == MaxWritten || p.joined.Len()+len(",")+len(path) > maxWrittenBytes:
		p.more = true
		path = "..."
	}
	if p.joined.Len() > 0 {
		p.joined.WriteByte(',')
	}
	p.joined.WriteString(path)
	p.n++
}

// pointer adds the field at a JSON pointer (RFC 6901).
func (p *paths) pointer(pointer string) {
	path := make([]byte, 0, len(pointer))
	for i, name := range strings.Split(pointer, "/") {
		if i > 0 {
			path = appendKey(path, []byte(strings.NewReplacer("~1", "/", "~0", "~").Replace(name)))
		}
	}
	if len(path) > 0 && !everywhere(string(path)) {
		p.add(string(path))
	}
}

func (p *paths) String() string { return p.joined.String() }

// appendKey adds a key to a path: as a field if it looks like one, and in brackets
// otherwise, and where keys are chosen by users.
func appendKey(path, key []byte) []byte {
	if isFieldName(key) && string(path) != "metadata.labels" && string(path) != "metadata.annotations" {
		if len(path) > 0 {
			path = append(path, '.')
		}
		return append(path, key...)
	}
	return append(append(append(path, '['), key...), ']')
}

// isFieldName reports whether a key looks like the name of a field.
func isFieldName[T string | []byte](key T) bool {
	for i := range len(key) {
		c := key[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(key) > 0
}

// everywhere reports whether a path is of a field that every patch may have: it names
// the object, or changes with everything else.
func everywhere(path string) bool {
	switch path {
	case "apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid",
		"metadata.resourceVersion", "metadata.generation", "metadata.managedFields", "metadata.creationTimestamp":
		return true
	}
	return false
}

// eachField calls yield with the path of every field of a JSON object that holds no
// other fields, until it returns false. What is malformed ends it.
func eachField(text []byte, yield func(path string) bool) {
	s := scanner{text: text, yield: yield, path: make([]byte, 0, 128)}
	s.value(0)
}

// scanner walks a JSON text without decoding its values.
type scanner struct {
	text  []byte
	at    int
	path  []byte
	yield func(string) bool
}

// next skips white space and returns the byte at hand, 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// value walks the value at hand. It reports false when the walk is over.
func (s *scanner) value(depth int) bool {
	if s.next() != '{' || depth == maxNested {
		return s.skip() && s.leaf()
	}
	s.at++
	if s.next() == '}' {
		s.at++
		return s.leaf()
	}
	for {
		key, ok := s.key()
		if !ok || s.next() != ':' {
			return false
		}
		s.at++
		if before := len(s.path); bytes.IndexByte(key, ',') < 0 {
			s.path = appendKey(s.path, key)
			ok = s.value(depth + 1)
			s.path = s.path[:before]
		} else { // no part of a path: the field that has the key stands for it
			ok = s.skip() && s.leaf()
		}
		if !ok {
			return false
		}
		switch s.next() {
		case ',':
			s.at++
			s.next()
		case '}':
			s.at++
			return true
		default:
			return false
		}
	}
}

// leaf yields the path at hand.
func (s *scanner) leaf() bool {
	path := string(s.path)
	return path == "" || everywhere(path) || s.yield(path)
}

// key reads a string.
func (s *scanner) key() ([]byte, bool) {
	from := s.at
	if !s.quoted() {
		return nil, false
	}
	text := s.text[from:s.at]
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1], true
	}
	var key string
	err := json.Unmarshal(text, &key)
	return []byte(key), err == nil
}

// quoted moves behind the string at hand.
func (s *scanner) quoted() bool {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for i := s.at + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			s.at = i + 1
			return true
		}
	}
	return false
}

// skip moves behind the value at hand, whatever it is.
func (s *scanner) skip() bool {
	open := 0
	for s.next() != 0 {
		switch s.text[s.at] {
		case '"':
			if !s.quoted() {
				return false
			}
		case '{', '[':
			open++
			s.at++
		case '}', ']':
			open--
			s.at++
		case ',', ':':
			s.at++
		default:
			for s.at < len(s.text) && strings.IndexByte(",:[]{}\" \t\n\r", s.text[s.at]) < 0 {
				s.at++
			}
		}
		if open < 0 {
			return false
		}
		if open == 0 {
			return true
		}
	}
	return false
}
