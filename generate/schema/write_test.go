// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	api "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/schema"
)

// full has every field.
func full() *schema.Schema {
	yes := true
	return &schema.Schema{
		Type: "object", Format: "f", Title: "t", Description: "One. Two.", Pattern: "p",
		Default: []byte(`{"a":9007199254740993}`), Example: []byte(`[1.50,"x"]`), Enum: [][]byte{[]byte(`"a"`), []byte(`2`), []byte(`null`)},
		Minimum: number(1), Maximum: number(2.5), MultipleOf: number(0.5), ExclusiveMinimum: true, ExclusiveMaximum: true,
		MinLength: integer(1), MaxLength: integer(2), MinItems: integer(3), MaxItems: integer(4), MinProperties: integer(5), MaxProperties: integer(6),
		UniqueItems: true, Nullable: true,
		Properties: map[string]*schema.Schema{
			"a10": {Type: "string"}, "a2": {}, "both": {IntOrString: true, AnyOf: []*schema.Schema{{Type: "integer"}, {Type: "string"}}},
			"any": {AnyAdditional: true}, "map": {Additional: &schema.Schema{Type: "string"}},
		},
		Required: []string{"a2"}, Items: &schema.Schema{Type: "string"},
		AllOf:           []*schema.Schema{{}, {Minimum: number(3)}},
		ExternalDocs:    &schema.ExternalDocs{URL: "u", Description: "d"},
		PreserveUnknown: true, EmbeddedResource: true, IntOrString: true,
		ListType: "map", MapType: "atomic", ListMapKeys: []string{"k"},
		Validations: []schema.Validation{
			{Rule: "r", Message: "m", MessageExpression: "e", Reason: "FieldValueInvalid", FieldPath: ".a", OptionalOldSelf: &yes}, {Rule: "second"},
		},
	}
}

const fullText = `allOf:
- {}
- minimum: 3
default:
  a: 9007199254740993
description: One. Two.
enum:
- a
- 2
- null
example:
- 1.5
- x
exclusiveMaximum: true
exclusiveMinimum: true
externalDocs:
  description: d
  url: u
format: f
items:
  type: string
maxItems: 4
maxLength: 2
maxProperties: 6
maximum: 2.5
minItems: 3
minLength: 1
minProperties: 5
minimum: 1
multipleOf: 0.5
nullable: true
pattern: p
properties:
  a2: {}
  a10:
    type: string
  any:
    additionalProperties: true
  both:
    anyOf:
    - type: integer
    - type: string
    x-kubernetes-int-or-string: true
  map:
    additionalProperties:
      type: string
required:
- a2
title: t
type: object
uniqueItems: true
x-kubernetes-embedded-resource: true
x-kubernetes-int-or-string: true
x-kubernetes-list-map-keys:
- k
x-kubernetes-list-type: map
x-kubernetes-map-type: atomic
x-kubernetes-preserve-unknown-fields: true
x-kubernetes-validations:
- fieldPath: .a
  message: m
  messageExpression: e
  optionalOldSelf: true
  reason: FieldValueInvalid
  rule: r
- rule: second
`

// flatFull is the full schema with its properties in the order in which they are
// written; what is in its allOf stays there.
func flatFull() *schema.Schema {
	s := full()
	parts := s.AllOf
	s.AllOf = nil
	flat := (&schema.Flattener{}).Flat(s)
	flat.AllOf = parts
	return flat
}

func TestWriterWritesEveryField(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(fullText, written(flatFull())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPropsSayWhatTheWriterWrites(t *testing.T) {
	t.Parallel()
	var want, got api.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(fullText), &want); err != nil {
		t.Fatal(err)
	}
	flat := flatFull()
	text, err := yaml.Marshal(flat.Props(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b api.JSON) bool { return string(a.Raw) == string(b.Raw) })); diff != "" {
		t.Errorf("(-written +props):\n%s", diff)
	}
	flat.Props(nil).Default.Raw[0] = 'x'
	if string(flat.Default) != `{"a":9007199254740993}` {
		t.Error("the API's own type shares bytes with the schema")
	}
	if (*schema.Schema)(nil).Props(nil) != nil {
		t.Error("no schema becomes one")
	}
}

func TestPropsLinkReferencesToDefinitions(t *testing.T) {
	t.Parallel()
	s := &schema.Schema{Ref: &schema.Ref{Package: &load.Package{Path: "example.com/api/v1"}, Name: "Thing"}}
	if got := s.Props(nil).Ref; got == nil || *got != "#/definitions/com.example.api.v1.Thing" {
		t.Errorf("reference %v", got)
	}
}

func TestWriterShortensDescriptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit      int
		text, want string
	}{
		{-1, "One sentence. Two.", "description: One sentence. Two.\n"},
		{0, "One sentence. Two.", ""},
		{18, "One sentence. Two.", "description: One sentence. Two.\n"},
		{11, "No sentence", "description: No sentence\n"},
		{17, "One sentence. Two.", "description: One sentence.\n"},
		{14, "One sentence. Two.", "description: One sentence.\n"},
		{12, "One sentence. Two.", "description: One...\n"},
		{4, "One sentence. Two.", "description: One...\n"},
		{3, "One sentence. Two.", "description: One...\n"},
		{2, "One sentence. Two.", "description: On...\n"},
		{8, "Wirklich? Ja.", "description: Wirklich...\n"},
		{9, "Wirklich? Ja.", "description: Wirklich?\n"},
	} {
		w := schema.NewWriter(&c.limit)
		w.Schema(0, &schema.Schema{Description: c.text})
		if got := string(w.Out); got != c.want {
			t.Errorf("%d: %q, want %q", c.limit, got, c.want)
		}
		props := (&schema.Schema{Description: c.text}).Props(&c.limit)
		if got := "description: " + props.Description + "\n"; got != c.want && props.Description != "" {
			t.Errorf("%d: the API's own type has %q", c.limit, got)
		}
	}
}

func TestWriterCopiesASchemaThatOccursAgain(t *testing.T) {
	t.Parallel()
	shared := (&schema.Flattener{}).Flat(&schema.Schema{Type: "object", Description: "shared", Properties: map[string]*schema.Schema{"a": {Type: "string"}}})
	const below = "\n  description: shared\n  properties:\n    a:\n      type: string\n  type: object\n"
	w := schema.NewWriter(nil)
	w.Child(0, "one", shared)
	w.Child(0, "two", shared)
	w.Open(0, "deeper")
	w.Child(2, "three", shared)
	first := string(w.Finish())
	if want := "one:" + below + "two:" + below + "deeper:\n  three:\n    description: shared\n    properties:\n      a:\n        type: string\n    type: object\n"; first != want {
		t.Errorf("first document:\n%s\nwant:\n%s", first, want)
	}
	w.Child(0, "four", &schema.Schema{})
	w.Child(0, "five", shared)
	w.Child(0, "six", shared)
	if got, want := string(w.Finish()), "four: {}\nfive:"+below+"six:"+below; got != want {
		t.Errorf("second document:\n%s\nwant:\n%s", got, want)
	}
}
