// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package breaking

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const definition = `
metadata: {name: things.example.com}
spec:
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, format: int32, minimum: 1, maximum: 10, default: 3}
              name: {type: string, maxLength: 20, nullable: true}
              level: {type: string, enum: [low, high]}
              labels: {type: object, additionalProperties: {type: string, maxLength: 10}}
              items: {type: array, x-kubernetes-list-type: atomic, items: {type: object, properties: {port: {type: integer}}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var crd map[string]any
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestChangesAreThoseThatBreakClientsOrObjects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, now, want string }{
		"nothing":                      {"", "", ""},
		"another scope":                {"scope: Namespaced", "scope: Cluster", ": scope was Namespaced and is Cluster"},
		"another kind":                 {"kind: Thing", "kind: Object", ": kind was Thing and is Object"},
		"a version that is removed":    {"name: v1\n", "name: v2\n", " v1: the version is removed; serve it until no client and no stored object has it"},
		"a version that is not served": {"served: true", "served: false", " v1: the version is not served any more"},
		"a subresource":                {"subresources: {status: {}}", "subresources: {}", " v1: the subresource status is removed"},
		"a field to select by":         {"selectableFields: [{jsonPath: .spec.size}]", "selectableFields: []", " v1: objects cannot be selected by .spec.size any more"},
		"a field that is removed":      {"              name: {type: string, maxLength: 20, nullable: true}\n", "", " v1 spec.name: the field is removed: it is pruned"},
		"a field that is new":          {"              name:", "              nickname: {type: string}\n              name:", ""},
		"a new field that is required": {"required: [size]", "required: [size, name]", " v1 spec.name: the field is required"},
		"required, with a default":     {"required: [size]\n            properties:", "required: [size, more]\n            properties:\n              more: {type: string, default: a}", ""},
		"another type":                 {"port: {type: integer}", "port: {type: string}", " v1 spec.items[].port: the type was integer and is string"},
		"a wider type":                 {"port: {type: integer}", "port: {type: number}", ""},
		"an int or string":             {"port: {type: integer}", "port: {x-kubernetes-int-or-string: true}", ""},
		"a higher minimum":             {"minimum: 1", "minimum: 2", " v1 spec.size: minimum was 1 and is 2"},
		"a lower minimum":              {"minimum: 1", "minimum: 0", ""},
		"a lower maximum":              {"maximum: 10", "maximum: 5", " v1 spec.size: maximum was 10 and is 5"},
		"a new maximum":                {"port: {type: integer}", "port: {type: integer, maximum: 5}", " v1 spec.items[].port: maximum was not set and is 5"},
		"no maximum":                   {", maximum: 10", "", ""},
		"an empty minimum":             {"maxLength: 20", "maxLength: 20, minLength: 0", ""},
		"a pattern":                    {"maxLength: 20", "maxLength: 20, pattern: ^a", " v1 spec.name: pattern was not set and is ^a"},
		"a narrower format":            {"format: int32", "format: date", " v1 spec.size: format was int32 and is date"},
		"a wider format":               {"format: int32", "format: int64", ""},
		"null":                         {", nullable: true", "", " v1 spec.name: null is refused"},
		"a value that is removed":      {"enum: [low, high]", "enum: [high, top]", ` v1 spec.level: the value "low" is removed from the enum`},
		"a value that is new":          {"enum: [low, high]", "enum: [low, high, top]", ""},
		"a new enum":                   {"maxLength: 20", "enum: [a]", ` v1 spec.name: only ["a"] are valid any more`},
		"another default":              {"default: 3", "default: 4", " v1 spec.size: the default was 3 and is 4"},
		"a default that is removed":    {", default: 3", "", " v1 spec.size: the default was 3 and is not set"},
		"values of a map":              {"maxLength: 10", "maxLength: 5", " v1 spec.labels{}: maxLength was 10 and is 5"},
		"a map that is none":           {"additionalProperties: {type: string, maxLength: 10}", "properties: {a: {type: string}}", " v1 spec.labels: other keys are pruned"},
		"another type of list":         {"list-type: atomic", "list-type: set", " v1 spec.items: x-kubernetes-list-type was atomic and is set"},
		"unknown fields":               {", x-kubernetes-preserve-unknown-fields: true", "", " v1 spec.free: unknown fields are pruned"},
		"a rule":                       {"required: [size]", "required: [size]\n            x-kubernetes-validations: [{rule: self.size > 1}]", " v1 spec: the rule self.size > 1 is new or changed"},
		"a definition that is removed": {"name: things.example.com", "name: others.example.com", ": the definition is removed, and all its objects with it"},
		"a strategy of conversion":     {"scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: None}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(definition, test.old) {
				t.Fatalf("the definition lacks %q", test.old)
			}
			changed := strings.Replace(definition, test.old, test.now, 1)
			var got []string
			for _, change := range Changes([]map[string]any{parse(t, definition)}, []map[string]any{parse(t, changed)}) {
				got = append(got, strings.TrimPrefix(change.String(), "things.example.com"))
			}
			if text := strings.Join(got, "\n"); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}
