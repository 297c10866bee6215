// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/storage"
)

// Marks in recorded objects for what every control plane has of its own.
const (
	uidMark      = "$UID"
	revisionMark = "$RV"
	timeMark     = "$TIME"
)

// Template is one object of a fresh cluster, recorded in the form in which it is
// stored, with marks for what every control plane has of its own. It is immutable.
type Template struct {
	Key storage.Key
	// Text with its marks, in the order of which there is no other: uid, revision,
	// then times.
	Text string
	// parts returns the text between the marks, found once for all control planes
	// of the process.
	parts func() templateParts
}

// NewTemplate returns a template of a text with marks.
func NewTemplate(key storage.Key, text string) Template {
	return Template{Key: key, Text: text, parts: sync.OnceValue(func() templateParts { return cut(text) })}
}

// Templates reads what oracle/cmd/bootstrap has recorded.
func Templates(recorded string) []Template {
	var out []Template
	for line := range strings.Lines(recorded) {
		bucket, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, text, ok := strings.Cut(rest, " "); ok && bucket != "#" {
			out = append(out, NewTemplate(storage.Key{Bucket: bucket, Name: name}, text))
		}
	}
	return out
}

// templateParts are the text of a template before the uid, before the revision,
// and after it, cut at the times.
type templateParts struct {
	before, between string
	after           []string
}

func cut(text string) templateParts {
	before, rest, _ := strings.Cut(text, uidMark)
	between, after, _ := strings.Cut(rest, revisionMark)
	return templateParts{before: before, between: between, after: strings.Split(after, timeMark)}
}

// Write returns the creation of the object. now is in the form of RFC 3339.
func (t *Template) Write(uid types.UID, now string) storage.Write {
	p := t.parts()
	value := make([]byte, 0, len(t.Text)-len(uidMark)-len(revisionMark)+len(uid)+(len(p.after)-1)*(len(now)-len(timeMark)))
	value = append(value, p.before...)
	value = append(value, uid...)
	value = append(value, p.between...)
	stamp := len(value)
	for i, text := range p.after {
		if i > 0 {
			value = append(value, now...)
		}
		value = append(value, text...)
	}
	return storage.Write{Key: t.Key, Value: value, Stamp: stamp, Expect: storage.Absent}
}

// Is reports whether a record is the object as it was created.
func (t *Template) Is(rec *storage.Record) bool {
	value, text := rec.Value, t.Text
	for {
		literal, rest, marked := strings.Cut(text, "$")
		if !marked {
			return string(value) == text
		}
		if len(value) < len(literal) || string(value[:len(literal)]) != literal {
			return false
		}
		// A mark and what stands for it end with the string that they are in.
		end, markEnd := bytes.IndexByte(value[len(literal):], '"'), strings.IndexByte(rest, '"')
		if end < 0 || markEnd < 0 {
			return false
		}
		value, text = value[len(literal)+end:], rest[markEnd:]
	}
}

// UID returns the uid of a record that [Template.Is] the object as it was created.
func (t *Template) UID(rec *storage.Record) types.UID {
	uid, _, _ := strings.Cut(string(rec.Value[len(t.parts().before):]), `"`)
	return types.UID(uid)
}

// Decode reads the object as it is created, with some time and without uid.
func (t *Template) Decode(into any) error {
	return json.Unmarshal(t.Write("", "2000-01-01T00:00:00Z").Value, into)
}
