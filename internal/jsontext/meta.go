// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontext

// Meta is the part of an object's metadata that selection and bookkeeping need. Its
// strings share the memory of the encoded object.
type Meta struct {
	Namespace string
	Name      string
	UID       string
	Labels    Labels
	// Terminating reports that deletionTimestamp is set.
	Terminating bool
}

// ReadMeta reads the metadata of an encoded object.
func ReadMeta(value []byte) Meta {
	var m Meta
	start, _, ok := Find(value, "metadata")
	if !ok {
		return m
	}
	for f := fieldsOf(value, start); f.advance(); {
		at := f.at
		switch f.key {
		case "namespace":
			m.Namespace = stringAt(value, at)
		case "name":
			m.Name = stringAt(value, at)
		case "uid":
			m.UID = stringAt(value, at)
		case "deletionTimestamp":
			m.Terminating = stringAt(value, at) != ""
		case "labels":
			for l := fieldsOf(value, at.start); l.advance(); {
				m.Labels = append(m.Labels, Label{l.key, stringAt(value, l.at)})
			}
		}
	}
	return m
}

func stringAt(value []byte, at span) string {
	if at.start >= len(value) || value[at.start] != '"' {
		return ""
	}
	s, _, _ := text(value, at.start)
	return s
}

// Label is one label.
type Label struct{ Key, Value string }

// Labels is a list of labels that implements labels.Labels. Objects have few labels, so
// it is searched linearly.
type Labels []Label

// Lookup returns the value of a label and whether it exists.
func (l Labels) Lookup(key string) (string, bool) {
	for i := range l {
		if l[i].Key == key {
			return l[i].Value, true
		}
	}
	return "", false
}

// Has reports whether a label exists.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the value of a label, or "".
func (l Labels) Get(key string) string {
	v, _ := l.Lookup(key)
	return v
}
