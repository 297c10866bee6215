// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
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

// readers keeps what a walk of eachField needs for the next one.
var readers sync.Pool

// eachField calls yield with the path of every field of a JSON object that holds no
// other fields, until it returns false. What is malformed ends it.
func eachField(text []byte, yield func(path string) bool) {
	r, ok := readers.Get().(*reader)
	if !ok {
		r = &reader{path: make([]byte, 0, 128)}
	}
	r.yield, r.text = yield, *bytes.NewBuffer(text)
	r.dec.Reset(&r.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	r.value(0)
	if cap(r.path) > maxText { // of very long keys
		return
	}
	r.yield, r.text, r.path = nil, bytes.Buffer{}, r.path[:0]
	r.dec.Reset(&r.text) // the text is the caller's
	readers.Put(r)
}

// reader goes through a JSON text without decoding its values.
type reader struct {
	text  bytes.Buffer
	dec   jsontext.Decoder
	path  []byte
	yield func(string) bool
}

// value walks the value at hand. It reports false when the walk is over.
func (r *reader) value(depth int) bool {
	if r.dec.PeekKind() != '{' || depth == maxNested {
		return r.leaf()
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return false
	}
	fields := 0
	for ; r.dec.PeekKind() == '"'; fields++ {
		name, err := r.dec.ReadValue()
		if err != nil {
			return false
		}
		before := len(r.path)
		// What has a comma is no part of a path: the field that has the key stands for it.
		if bytes.IndexByte(name, ',') >= 0 {
			if !r.leaf() {
				return false
			}
		} else {
			key := []byte(name[1 : len(name)-1])
			if bytes.IndexByte(key, '\\') >= 0 {
				key, _ = jsontext.AppendUnquote(nil, name) // the decoder has checked it
			}
			r.path = appendKey(r.path, key)
			if !r.value(depth + 1) {
				return false
			}
		}
		r.path = r.path[:before]
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return false
	}
	return fields > 0 || r.tell()
}

// leaf yields the path at hand and moves behind its value.
func (r *reader) leaf() bool { return r.dec.SkipValue() == nil && r.tell() }

// tell yields the path at hand.
func (r *reader) tell() bool {
	path := string(r.path)
	return path == "" || everywhere(path) || r.yield(path)
}
