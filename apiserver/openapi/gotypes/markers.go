// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gotypes

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

//go:embed markers.txt
var kubernetes string

var kubernetesMarkers = sync.OnceValue(func() Markers { return ParseMarkers(kubernetes) })

// Kubernetes returns the markers of the built-in types. They are parsed on first use.
func Kubernetes() Markers { return kubernetesMarkers() }

// Markers are the markers in the comments of types and fields. They are immutable.
type Markers map[string]marker // by "import/path.Type" or "import/path.Type.field"

// marker has the markers of one type or field.
type marker struct {
	listType, mapType string
	listKeys          []any
	enum              []string
	defaultValue      any
	// optional and required override the JSON tag.
	optional, required bool
	rules              []string
}

// ParseMarkers parses the output of the extract command: tab-separated lines, "package"
// and an import path, or a name in that package and its markers. Unknown markers are
// ignored.
func ParseMarkers(text string) Markers {
	out := Markers{}
	path := ""
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if parts[0] == "package" && len(parts) == 2 {
			path = parts[1]
			continue
		}
		m := out[path+"."+parts[0]]
		for _, part := range parts[1:] {
			if rule, ok := strings.CutPrefix(part, "k8s:"); ok {
				m.rules = append(m.rules, rule)
				continue
			}
			name, value, _ := strings.Cut(part, "=")
			switch name {
			case "listType":
				m.listType = value
			case "listMapKey":
				m.listKeys = append(m.listKeys, strings.Trim(value, `"`))
			case "mapType", "structType":
				m.mapType = value
			case "enum":
				m.enum = strings.Split(value, "|")
			case "optional":
				m.optional = true
			case "required":
				m.required = true
			case "default":
				if json.Unmarshal([]byte(value), &m.defaultValue) != nil {
					m.defaultValue = nil
				}
			}
		}
		out[path+"."+parts[0]] = m
	}
	return out
}

// of returns the markers of a field, or of the type itself.
func (m Markers) of(t reflect.Type, field string) marker {
	if t.PkgPath() == "" {
		return marker{}
	}
	name := t.PkgPath() + "." + t.Name()
	if field != "" {
		name += "." + field
	}
	return m[name]
}

// Rules returns the validation rules that Kubernetes declares of a field of a built-in type,
// named as on the wire, or of the type itself if field is empty (KEP-5073): those in force in
// the served minor, as the markers say them, without "+k8s:" and stage.
func Rules(t reflect.Type, field string) []string { return Kubernetes().of(t, field).rules }

// extend adds the markers to a schema.
func (m marker) extend(s *spec.Schema) {
	if m.listType != "" {
		s.AddExtension("x-kubernetes-list-type", m.listType)
	}
	if len(m.listKeys) > 0 {
		s.AddExtension("x-kubernetes-list-map-keys", m.listKeys)
	}
	if m.mapType != "" {
		s.AddExtension("x-kubernetes-map-type", m.mapType)
	}
}
