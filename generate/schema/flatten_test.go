// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate/schema"
)

func number(n float64) *float64 { return &n }

func integer(n int64) *int64 { return &n }

// plain is a schema as JSON, whether it is flat or not.
func plain(t *testing.T, s *schema.Schema) string {
	t.Helper()
	text, err := json.Marshal(s.Props(nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// written is a schema as YAML, in which a flat schema's properties are.
func written(s *schema.Schema) string {
	w := schema.NewWriter(nil)
	w.Schema(0, s)
	return string(w.Out)
}

func TestFlattenerMergesWhatEmbeddedStructsSay(t *testing.T) {
	t.Parallel()
	text := &schema.Schema{Type: "string"}
	for name, c := range map[string]struct {
		in   *schema.Schema
		want string
	}{
		"without parts": {in: &schema.Schema{Type: "string", Pattern: "a"}, want: "pattern: a\ntype: string\n"},
		"what one side says": {
			in: &schema.Schema{
				Type: "object", Required: []string{"b"}, Properties: map[string]*schema.Schema{"b": text},
				AllOf: []*schema.Schema{
					{Required: []string{"a", "b"}, Properties: map[string]*schema.Schema{"a": text, "c": {}}},
					{Nullable: true, UniqueItems: true, ExclusiveMinimum: true, ExclusiveMaximum: true, PreserveUnknown: true, EmbeddedResource: true, IntOrString: true},
					{ListType: "map", ListMapKeys: []string{"k"}, MapType: "atomic", Format: "f", Pattern: "p"},
				},
			},
			want: `exclusiveMaximum: true
exclusiveMinimum: true
format: f
nullable: true
pattern: p
properties:
  a:
    type: string
  b:
    type: string
  c: {}
required:
- a
- b
type: object
uniqueItems: true
x-kubernetes-embedded-resource: true
x-kubernetes-int-or-string: true
x-kubernetes-list-map-keys:
- k
x-kubernetes-list-type: map
x-kubernetes-map-type: atomic
x-kubernetes-preserve-unknown-fields: true
`,
		},
		"limits of both sides hold, also equal ones": {
			in: &schema.Schema{Minimum: number(1), MaxLength: integer(5), AllOf: []*schema.Schema{{Minimum: number(1), Maximum: number(9), MaxLength: integer(4)}}},
			want: `allOf:
- maxLength: 5
  minimum: 1
- maxLength: 4
  minimum: 1
maximum: 9
`,
		},
		"equal numbers of properties are one": {
			in:   &schema.Schema{MinProperties: integer(1), MaxProperties: integer(3), AllOf: []*schema.Schema{{MinProperties: integer(1), MaxProperties: integer(2)}}},
			want: "allOf:\n- maxProperties: 3\n- maxProperties: 2\nminProperties: 1\n",
		},
		"equal texts are one": {
			in:   &schema.Schema{Format: "f", Pattern: "a", AllOf: []*schema.Schema{{Format: "f", Pattern: "b"}}},
			want: "allOf:\n- pattern: a\n- pattern: b\nformat: f\n",
		},
		"the same field in two parts": {
			in: &schema.Schema{Type: "object", AllOf: []*schema.Schema{
				{Properties: map[string]*schema.Schema{"a": {Type: "integer", Minimum: number(1)}}},
				{Properties: map[string]*schema.Schema{"a": {Type: "integer", Maximum: number(2), Description: "lost"}}},
			}},
			want: "properties:\n  a:\n    maximum: 2\n    minimum: 1\n    type: integer\ntype: object\n",
		},
		"values of maps": {
			in: &schema.Schema{Additional: &schema.Schema{MinLength: integer(1)}, AllOf: []*schema.Schema{
				{Additional: &schema.Schema{MaxLength: integer(2)}}, {AnyAdditional: true},
			}},
			want: "additionalProperties:\n  maxLength: 2\n  minLength: 1\n",
		},
		"any values": {in: &schema.Schema{AllOf: []*schema.Schema{{AnyAdditional: true}}}, want: "additionalProperties: true\n"},
		"defaults differ": {
			in:   &schema.Schema{Default: []byte(`"a"`), AllOf: []*schema.Schema{{Default: []byte(`"b"`)}}},
			want: "allOf:\n- default: a\n- default: b\n",
		},
		"default of one side": {in: &schema.Schema{AllOf: []*schema.Schema{{Default: []byte(`1`)}}}, want: "default: 1\n"},
		"enumerations: the first counts": {
			in:   &schema.Schema{AllOf: []*schema.Schema{{Enum: [][]byte{[]byte(`"a"`)}}, {Enum: [][]byte{[]byte(`"b"`)}}}},
			want: "enum:\n- a\n",
		},
		"alternatives": {
			in:   &schema.Schema{AnyOf: []*schema.Schema{{Type: "string"}}, AllOf: []*schema.Schema{{AnyOf: []*schema.Schema{{Type: "integer"}}}}},
			want: "allOf:\n- anyOf:\n  - type: string\n- anyOf:\n  - type: integer\n",
		},
		"rules: those of the part go first": {
			in:   &schema.Schema{Validations: []schema.Validation{{Rule: "own"}}, AllOf: []*schema.Schema{{Validations: []schema.Validation{{Rule: "part"}}}}},
			want: "x-kubernetes-validations:\n- rule: part\n- rule: own\n",
		},
		"parts of parts": {
			in:   &schema.Schema{AllOf: []*schema.Schema{{AllOf: []*schema.Schema{{Type: "object"}, {MinProperties: integer(1)}}}}},
			want: "minProperties: 1\ntype: object\n",
		},
		"below lists and maps": {
			in: &schema.Schema{
				Items:      &schema.Schema{AllOf: []*schema.Schema{{Type: "string"}}},
				Properties: map[string]*schema.Schema{"a": {Additional: &schema.Schema{AllOf: []*schema.Schema{{Type: "integer"}}}}},
			},
			want: "items:\n  type: string\nproperties:\n  a:\n    additionalProperties:\n      type: integer\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &schema.Flattener{Conflict: func(_ *schema.Schema, a, b string) { t.Errorf("conflict of %s and %s", a, b) }}
			before := plain(t, c.in)
			flat := f.Flat(c.in)
			if diff := cmp.Diff(c.want, written(flat)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if f.Flat(c.in) != flat {
				t.Error("a schema is flattened twice")
			}
			if diff := cmp.Diff(before, plain(t, c.in)); diff != "" {
				t.Errorf("the schema itself has changed (-before +after):\n%s", diff)
			}
		})
	}
	if (&schema.Flattener{}).Flat(nil) != nil {
		t.Error("no schema is flattened to one")
	}
}

func TestFlattenerReportsASchemaOfTwoTypes(t *testing.T) {
	t.Parallel()
	var told []string
	f := &schema.Flattener{Conflict: func(at *schema.Schema, a, b string) { told = append(told, at.Pattern+" "+a+" "+b) }}
	f.Flat(&schema.Schema{Type: "string", Pattern: "p", AllOf: []*schema.Schema{{Type: "string"}, {}, {Type: "integer"}}})
	if diff := cmp.Diff([]string{"p string integer"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
