// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fast

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// Defaulted accepts objects that pruning and defaulting would leave as they are: every
// field is in the schema, none is null, and those with defaults are there. Like [Schema]
// it allocates nothing and never refuses: what it does not accept is walked by the
// library, which prunes it and names what it dropped. A nil Defaulted accepts scalars.
type Defaulted struct {
	properties map[string]*Defaulted
	additional *Defaulted
	items      *Defaulted
	defaults   []string // the properties that have one, in order
	// others reports that fields which are not properties are covered by
	// additional, open that they may be anything.
	others, open bool
	// opaque values are for the library alone.
	opaque bool
}

// NewDefaulted returns what accepts the values of a schema; root is set for that of whole
// objects. nil for no schema.
func NewDefaulted(s *schema.Structural, root bool) *Defaulted {
	if s == nil {
		return nil
	}
	t := &Defaulted{open: s.XPreserveUnknownFields, opaque: s.XEmbeddedResource && !root}
	if t.opaque {
		return t
	}
	t.properties = make(map[string]*Defaulted, len(s.Properties))
	for name := range s.Properties {
		property := s.Properties[name]
		t.properties[name] = NewDefaulted(&property, false)
		if property.Default.Object != nil {
			t.defaults = append(t.defaults, name)
		}
	}
	slices.Sort(t.defaults)
	if s.AdditionalProperties != nil {
		t.others, t.additional = true, NewDefaulted(s.AdditionalProperties.Structural, false)
	}
	t.items = NewDefaulted(s.Items, false)
	return t
}

// Accepts reports whether a whole object would be left as it is, its type
// and metadata aside.
//
//steer:fast custom
func (t *Defaulted) Accepts(d *doc.Doc) bool {
	if t == nil || t.others { // others are metadata as well
		return false
	}
	for _, name := range t.defaults {
		if !d.Has(name) {
			return false
		}
	}
	return doc.Each(d, d, func(name string, value, _ doc.Value) bool {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			return true
		}
		text, ok := value.Text()
		r := text.Reader()
		return ok && t.acceptsField(name, &r)
	})
}

func (t *Defaulted) acceptsField(name string, r *jsontext.Reader) bool {
	property, known := t.properties[name]
	switch {
	case known:
		return property.accepts(r)
	case t.others:
		return t.additional.accepts(r)
	}
	r.Skip()
	return t.open
}

// accepts reports whether the value that the reader is at would be left as it is, and
// takes it.
func (t *Defaulted) accepts(r *jsontext.Reader) bool {
	switch r.Kind() {
	case 'n':
		return false
	case '{':
		if t == nil || t.opaque {
			return false
		}
		wanted := t.defaults
		for name, ok := r.Member(); ok; name, ok = r.Member() {
			if len(wanted) > 0 && wanted[0] == name {
				wanted = wanted[1:]
			}
			if !t.acceptsField(name, r) {
				return false
			}
		}
		return len(wanted) == 0
	case '[':
		if t == nil || t.opaque {
			return false
		}
		for r.Element() {
			if !t.items.accepts(r) {
				return false
			}
		}
		return true
	}
	r.Skip()
	return true
}
