// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"strconv"
	"strings"
	"unsafe"
)

// Frozen is a JSON value that nobody has had to look into: its canonical text. It
// stands where decoding would put maps, lists and scalars, and takes no memory but
// that of the body or the record it was read from.
//
// Canonical text has no space, members in the order of their names, each once, and
// strings and numbers as [Marshal] writes them. So two frozen values are equal when
// their texts are, and encoding one copies it.
//
// Frozen values occur as members of unstructured objects under way, apiVersion, kind
// and metadata aside, and as managedFields of the metadata; nowhere else. They are never
// changed. A value that has no
// canonical text with the same meaning, such as 1.0 (which would be read again as an
// integer), stays decoded; so whoever gets an object may find either form in it. Those
// who need maps thaw the object first.
type Frozen string

// Thaw decodes the value.
func (f Frozen) Thaw() any {
	d := decoding{value: unsafe.Slice(unsafe.StringData(string(f)), len(f))}
	value, _ := d.element(0)
	return value
}

// IsObject reports whether the value is an object.
func (f Frozen) IsObject() bool { return f != "" && f[0] == '{' }

// Freeze replaces the decoded members of an object by frozen ones, where that is
// possible.
func Freeze(content map[string]any) {
	for name, value := range content {
		if thawedByName(name) {
			continue
		}
		if frozen, ok := FreezeValue(value); ok {
			content[name] = frozen
		}
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if record, has := metadata["managedFields"]; has {
			if frozen, ok := FreezeValue(record); ok {
				metadata["managedFields"] = frozen
			}
		}
	}
}

// thawedByName tells which members of an object are never frozen.
func thawedByName(name string) bool {
	return name == "metadata" || name == "apiVersion" || name == "kind"
}

// FreezeValue freezes a decoded value; one that is frozen it returns as it is.
func FreezeValue(value any) (frozen Frozen, ok bool) {
	if frozen, ok = value.(Frozen); ok {
		return frozen, true
	}
	if !freezable(value) {
		return "", false
	}
	text, err := appendValue(nil, value)
	if err != nil {
		return "", false
	}
	return Frozen(unsafe.String(unsafe.SliceData(text), len(text))), true
}

// freezable reports whether a decoded value would be decoded again from its text.
func freezable(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !freezable(member) {
				return false
			}
		}
		return v != nil
	case []any:
		for _, element := range v {
			if !freezable(element) {
				return false
			}
		}
		return v != nil
	case float64:
		_, ok := fraction(v)
		return ok
	case nil, string, bool, int64:
		return true
	}
	return false
}

// Thaw decodes the frozen members of an object, in place, and reports whether there
// were any.
func Thaw(content map[string]any) (had bool) {
	for name, value := range content {
		if frozen, ok := value.(Frozen); ok {
			content[name], had = frozen.Thaw(), true
		}
	}
	if metadata, record, frozen := frozenRecord(content); frozen {
		metadata["managedFields"], had = record.Thaw(), true
	}
	return had
}

// frozenRecord returns the metadata of an object and its managedFields if they are frozen.
func frozenRecord(content map[string]any) (metadata map[string]any, record Frozen, ok bool) {
	if metadata, ok = content["metadata"].(map[string]any); ok {
		record, ok = metadata["managedFields"].(Frozen)
	}
	return metadata, record, ok
}

// Thawed returns an object without frozen members: the same if it has none.
func Thawed(content map[string]any) map[string]any {
	metadata, _, frozen := frozenRecord(content)
	recorded := frozen
	for _, value := range content {
		if _, is := value.(Frozen); is {
			frozen = true
		}
	}
	if !frozen {
		return content
	}
	out := maps.Clone(content)
	if recorded {
		out["metadata"] = maps.Clone(metadata)
	}
	Thaw(out)
	return out
}

// Reader walks over frozen values. Who uses it has to take every value that it is
// brought to, by one of its methods or another walk.
type Reader struct {
	text string
	at   int
}

// Reader returns a reader that is at the value.
func (f Frozen) Reader() Reader { return Reader{text: string(f)} }

// Kind returns the first character of the value that the reader is at, which tells
// its type.
func (r *Reader) Kind() byte { return r.text[r.at] }

// Member brings the reader to the first member of an object, or to the next one when
// it has taken a member. ok is false behind the last.
func (r *Reader) Member() (name string, ok bool) {
	c := r.text[r.at]
	r.at++
	if c == '{' && r.text[r.at] == '}' {
		r.at++
		return "", false
	}
	if c == '}' {
		return "", false
	}
	rest := r.text[r.at+1:]
	name = rest[:strings.IndexByte(rest, '"')]
	if strings.IndexByte(name, '\\') >= 0 {
		name = r.Text()
		r.at++
		return name, true
	}
	r.at += len(name) + len(`"":`)
	return name, true
}

// Element brings the reader to the first element of a list, or to the next one. It is
// false behind the last.
func (r *Reader) Element() bool {
	c := r.text[r.at]
	r.at++
	if c == '[' && r.text[r.at] == ']' {
		r.at++
		return false
	}
	return c != ']'
}

// Take takes a value as it is.
func (r *Reader) Take() Frozen {
	begin := r.at
	r.Skip()
	return Frozen(r.text[begin:r.at])
}

// Skip passes over a value.
func (r *Reader) Skip() {
	value := unsafe.Slice(unsafe.StringData(r.text), len(r.text))
	if end := Skip(value, r.at); end > 0 {
		r.at = end
		return
	}
	r.at = len(r.text)
}

// Text takes a string.
func (r *Reader) Text() string {
	value := unsafe.Slice(unsafe.StringData(r.text), len(r.text))
	s, end, _ := text(value, r.at)
	r.at = end
	return s
}

// Number takes a number: an integer, unless isFraction.
func (r *Reader) Number() (whole int64, fraction float64, isFraction bool) {
	text := string(r.Take())
	whole, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return whole, 0, false
	}
	fraction, _ = strconv.ParseFloat(text, 64) // it was read before
	return 0, fraction, true
}
