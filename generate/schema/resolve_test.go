// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate/schema"
)

func TestResolverJoinsATypeWithItsUse(t *testing.T) {
	t.Parallel()
	of := func(name string) *schema.Ref { return &schema.Ref{Name: name} }
	types := map[string]*schema.Schema{
		"Word": {
			Type: "string", MaxLength: integer(8), Description: "of the type", Title: "type",
			ExternalDocs: &schema.ExternalDocs{URL: "type"}, Example: []byte(`"type"`),
		},
		"Alias": {Ref: of("Word"), MinLength: integer(2)},
		"Loose": {Type: "object", Properties: map[string]*schema.Schema{"own": {Ref: of("Loose"), PreserveUnknown: true}}},
		"Tree":  {Type: "object", Properties: map[string]*schema.Schema{"children": {Type: "array", Items: &schema.Schema{Ref: of("Tree")}}}},
	}
	asType := "description: of the type\nexample: type\nexternalDocs:\n  url: type\nmaxLength: 8\n"
	for name, c := range map[string]struct {
		in     *schema.Schema
		want   string
		cyclic int
	}{
		"no reference":     {in: &schema.Schema{Type: "string"}, want: "type: string\n"},
		"a type":           {in: &schema.Schema{Ref: of("Word")}, want: asType + "title: type\ntype: string\n"},
		"a type of a type": {in: &schema.Schema{Ref: of("Alias"), Pattern: "p"}, want: asType + "minLength: 2\npattern: p\ntitle: type\ntype: string\n"},
		"a use that is documented": {
			in: &schema.Schema{
				Ref: of("Word"), MinLength: integer(2), Description: "of the use", Title: "use",
				ExternalDocs: &schema.ExternalDocs{URL: "use"}, Example: []byte(`"use"`),
			},
			want: "description: of the use\nexample: use\nexternalDocs:\n  url: use\nmaxLength: 8\nminLength: 2\ntitle: use\ntype: string\n",
		},
		"everywhere below": {
			in: &schema.Schema{
				AllOf:      []*schema.Schema{{Properties: map[string]*schema.Schema{"x": {Ref: of("Alias"), Title: "t", Description: "d", Example: []byte("1"), ExternalDocs: &schema.ExternalDocs{URL: "u"}}}}},
				Additional: &schema.Schema{Items: &schema.Schema{Ref: of("Word")}},
			},
			want: "additionalProperties:\n  items:\n    description: of the type\n    example: type\n    externalDocs:\n      url: type\n    maxLength: 8\n    title: type\n    type: string\n" +
				"properties:\n  x:\n    description: d\n    example: 1\n    externalDocs:\n      url: u\n    maxLength: 8\n    minLength: 2\n    title: t\n    type: string\n",
		},
		"a type that contains itself": {
			in:     &schema.Schema{Ref: of("Tree")},
			want:   "properties:\n  children:\n    items: {}\n    type: array\ntype: object\n",
			cyclic: 1,
		},
		"a type that contains itself where the reference keeps unknown fields": {
			in:   &schema.Schema{Ref: of("Loose")},
			want: "properties:\n  own:\n    x-kubernetes-preserve-unknown-fields: true\ntype: object\n",
		},
		"a type that contains itself where unknown fields are kept": {
			in:     &schema.Schema{Ref: of("Tree"), PreserveUnknown: true},
			want:   "properties:\n  children:\n    items: {}\n    type: array\ntype: object\nx-kubernetes-preserve-unknown-fields: true\n",
			cyclic: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cyclic := 0
			r := &schema.Resolver{
				SchemaOf: func(ref schema.Ref) *schema.Schema {
					if ref.Name == "root" {
						return c.in
					}
					return types[ref.Name]
				},
				Cyclic: func(use *schema.Schema) {
					if use.Ref.Name != "Tree" {
						t.Errorf("%s is cyclic", use.Ref.Name)
					}
					cyclic++
				},
			}
			root := r.Root(schema.Ref{Name: "root"})
			if diff := cmp.Diff(c.want, written((&schema.Flattener{}).Flat(root))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if cyclic != c.cyclic {
				t.Errorf("%d cyclic references, want %d", cyclic, c.cyclic)
			}
			if r.Root(schema.Ref{Name: "root"}) != root {
				t.Error("a type is resolved twice")
			}
		})
	}
}

func TestImpossibleNamesLimitsThatLeaveNoValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   schema.Schema
		want []string
	}{
		"none":         {},
		"one number":   {in: schema.Schema{Minimum: number(1), Maximum: number(1)}},
		"exclusive":    {in: schema.Schema{Minimum: number(1), Maximum: number(1), ExclusiveMinimum: true}, want: []string{"no number is at least 1 and at most 1"}},
		"numbers":      {in: schema.Schema{Minimum: number(1.5), Maximum: number(1)}, want: []string{"no number is at least 1.5 and at most 1"}},
		"one length":   {in: schema.Schema{MinLength: integer(3), MaxLength: integer(3)}},
		"only minimum": {in: schema.Schema{MinLength: integer(3), MinItems: integer(3), Minimum: number(3)}},
		"all": {
			in: schema.Schema{MinLength: integer(3), MaxLength: integer(2), MinItems: integer(3), MaxItems: integer(2), MinProperties: integer(3), MaxProperties: integer(2)},
			want: []string{
				"its length cannot be at least 3 and at most 2", "its number of items cannot be at least 3 and at most 2",
				"its number of properties cannot be at least 3 and at most 2",
			},
		},
	} {
		if diff := cmp.Diff(c.want, c.in.Impossible()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDescribeNamesTheType(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*schema.Schema{
		"array": {Type: "array", Ref: &schema.Ref{Name: "X"}}, "type X": {Ref: &schema.Ref{Name: "X"}}, "a value without type": {},
	} {
		if got := s.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
