// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

// tidy recognises objects that pruning would leave as they are: every field is
// in the schema, and none is null. Like [plain] it allocates nothing and never
// refuses: what it does not recognise is walked by the library, which prunes it
// and names what it dropped. A nil tidy recognises scalars.
type tidy struct {
	properties map[string]*tidy
	additional *tidy
	items      *tidy
	// others tells that fields which are not properties are covered by
	// additional, open that they may be anything.
	others, open bool
	// opaque values are for the library alone.
	opaque bool
}

func newTidy(s *schema.Structural, root bool) *tidy {
	if s == nil {
		return nil
	}
	t := &tidy{open: s.XPreserveUnknownFields, opaque: s.XEmbeddedResource && !root}
	if t.opaque {
		return t
	}
	t.properties = make(map[string]*tidy, len(s.Properties))
	for name := range s.Properties {
		property := s.Properties[name]
		t.properties[name] = newTidy(&property, false)
	}
	if s.AdditionalProperties != nil {
		t.others, t.additional = true, newTidy(s.AdditionalProperties.Structural, false)
	}
	t.items = newTidy(s.Items, false)
	return t
}

// recognisesObject tells whether a whole object would be left as it is, its type
// and metadata aside.
func (t *tidy) recognisesObject(content map[string]any) bool {
	if t == nil {
		return false
	}
	for name, value := range content {
		switch name {
		case "apiVersion", "kind", "metadata":
		default:
			if !t.recognisesField(name, value) {
				return false
			}
		}
	}
	return true
}

func (t *tidy) recognisesField(name string, value any) bool {
	property, known := t.properties[name]
	switch {
	case known:
		return property.recognises(value)
	case t.others:
		return t.additional.recognises(value)
	}
	return t.open
}

func (t *tidy) recognises(value any) bool {
	switch v := value.(type) {
	case string, bool, int64, float64:
		return true
	case map[string]any:
		if t == nil || t.opaque {
			return false
		}
		for name, member := range v {
			if !t.recognisesField(name, member) {
				return false
			}
		}
		return true
	case []any:
		if t == nil || t.opaque {
			return false
		}
		for _, element := range v {
			if !t.items.recognises(element) {
				return false
			}
		}
		return true
	}
	return false
}
