// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// Meta is what selection and the server's own bookkeeping need of an object's
// metadata. Its strings share the memory of the bytes it was read from.
type Meta struct {
	Namespace string
	Name      string
	UID       string
	Labels    Labels
	// Terminating tells that deletionTimestamp is set.
	Terminating bool
}

// ReadMeta reads the metadata of an object.
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

// Labels is a list of labels that selectors can be matched against (it
// implements labels.Labels). Objects have few, so it is searched linearly.
type Labels []Label

// Lookup returns the value of a label and whether it is there.
func (l Labels) Lookup(key string) (string, bool) {
	for i := range l {
		if l[i].Key == key {
			return l[i].Value, true
		}
	}
	return "", false
}

// Has reports whether a label is there.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the value of a label, or "".
func (l Labels) Get(key string) string {
	v, _ := l.Lookup(key)
	return v
}
