// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package parts_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// mutator breaks definitions, mostly with mistakes that authors make.
type mutator struct{ *rand.Rand }

// mutate returns a copy with n changes that can still be decoded.
func (m mutator) mutate(crd *v1.CustomResourceDefinition, n int) *v1.CustomResourceDefinition {
	out := crd.DeepCopy()
	for range n {
		var tree map[string]any
		data, err := json.Marshal(out)
		if err != nil || json.Unmarshal(data, &tree) != nil {
			return out
		}
		m.change(tree)
		changed := &v1.CustomResourceDefinition{}
		if data, err = json.Marshal(tree); err == nil && json.Unmarshal(data, changed) == nil {
			out = changed
		}
	}
	return out
}

// place is an object in the tree, with its kind.
type place struct {
	object map[string]any
	kind   string
}

// change makes one change to a definition.
func (m mutator) change(tree map[string]any) {
	places := collect(nil, tree, "definition")
	at := places[m.IntN(len(places))]
	if m.IntN(2) == 0 { // so that rare kinds are chosen too
		kind := slices.Compact(slices.Sorted(func(yield func(string) bool) {
			for _, p := range places {
				if !yield(p.kind) {
					return
				}
			}
		}))
		want := kind[m.IntN(len(kind))]
		same := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.kind != want })
		at = same[m.IntN(len(same))]
	}
	words := vocabulary[at.kind]
	keys := slices.Sorted(maps.Keys(words))
	present := slices.Sorted(maps.Keys(at.object))
	switch {
	case len(present) > 0 && m.IntN(5) == 0:
		delete(at.object, present[m.IntN(len(present))])
	case len(present) > 0 && m.IntN(8) == 0: // a value from another place
		other := places[m.IntN(len(places))]
		if other.kind == at.kind {
			for k, v := range clone(other.object) {
				if m.IntN(2) == 0 {
					at.object[k] = v
				}
			}
		}
	case at.kind == "properties":
		name := pick(m, []any{"a", "spec", "status", "metadata", "kind", "self", "x-y", "ключ", "name", "side"}).(string)
		at.object[name] = clone(pick(m, nodes))
	case len(keys) > 0:
		key := keys[m.IntN(len(keys))]
		at.object[key] = clone(pick(m, words[key]))
	}
}

func pick(m mutator, list []any) any { return list[m.IntN(len(list))] }

func clone[T any](v T) T {
	var out T
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// collect returns the objects in a definition.
func collect(out []place, v any, kind string) []place {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = collect(out, e, kind)
		}
	case map[string]any:
		out = append(out, place{v, kind})
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if next := inside(kind, key); next != "" {
				out = collect(out, v[key], next)
			}
		}
	}
	return out
}

// inside returns the kind of object that a key leads to, or "".
func inside(kind, key string) string {
	switch kind {
	case "properties":
		return "schema"
	case "schema":
		switch key {
		case "properties", "patternProperties", "definitions":
			return "properties"
		case "items", "additionalProperties", "not", "allOf", "anyOf", "oneOf", "additionalItems":
			return "schema"
		case "x-kubernetes-validations":
			return "rule"
		}
		return ""
	case "scale":
		return ""
	}
	switch key {
	case "openAPIV3Schema":
		return "schema"
	case "schema": // of a version
		return "validation"
	}
	return key
}

// nodes are schemas for new properties.
var nodes = []any{
	map[string]any{"type": "string"},
	map[string]any{"type": "string", "default": "x"},
	map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string", "nullable": true}}},
	map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "integer", "default": 1}},
	map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "x-kubernetes-list-type": "set"},
	map[string]any{"type": "array", "items": map[string]any{"type": "array", "x-kubernetes-list-type": "set", "items": map[string]any{"type": "string"}}, "x-kubernetes-list-type": "set"},
	map[string]any{"type": "array", "maxItems": 100, "items": map[string]any{"type": "string", "maxLength": 100, "x-kubernetes-validations": []any{map[string]any{"rule": "self.matches('a+')"}}}},
	map[string]any{"x-kubernetes-int-or-string": true},
	map[string]any{"x-kubernetes-preserve-unknown-fields": true},
	map[string]any{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
	map[string]any{"type": "array"},
	map[string]any{},
}

var numbers = []any{0, 1, 2, 5, 100, 100000, -1}

// rules are cheap, expensive, invalid, or use oldSelf.
var rules = []any{
	"true", "self == oldSelf", "self.size() > 0", "self.all(x, self.all(y, self.all(z, x == y && y == z)))", "self.missing == 1",
	"has(self.name)", "self.heat > 1", "self >= 0", "self.startsWith('a')", "self.map(k, self[k])", "", "  ", "1 +", "'text'", "a\nb", "true\n&& true",
	"self.metadata.name == 'x'", "self.all(k, self[k].matches('(a+)+'))", "!oldSelf.hasValue() || self == oldSelf.value()", "isURL(self) && url(self).getHost() == ''",
	"self.spouts.all(s, self.spouts.exists(o, o.name == s.side))", "self.words.join(',').size() < 5", "quantity(self).isGreaterThan(quantity('1'))",
}

var rule = map[string][]any{
	"rule": rules, "message": {"", " ", "fine", "two\nlines"}, "messageExpression": {"", " ", "'fine'", "self", "1", "'a' + self.colour", "self.words.join(',')"},
	"reason": {"FieldValueInvalid", "FieldValueDuplicate", "Nonsense", ""}, "fieldPath": {"", " ", ".heat", ".spec", ".spec.heat", "heat", ".tags['x']", "['colour']", ".a\n", ".metadata.name", ".spouts[0]"},
	"optionalOldSelf": {true, false},
}

var columns = map[string][]any{
	"name": {"", "X"}, "type": {"", "string", "date", "object"}, "format": {"", "int32", "date-time", "colour"}, "jsonPath": {"", "spec", ".spec", ".", ".spec[0].x"},
}

func some(vocabulary map[string][]any, n int) (out []any) {
	for i := range n {
		one := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(vocabulary)) {
			one[key] = vocabulary[key][i*7%len(vocabulary[key])]
		}
		out = append(out, one)
	}
	return out
}

func fields(n int) (out []any) {
	for i := range n {
		out = append(out, map[string]any{"jsonPath": ".spec." + string(rune('a'+i))})
	}
	return out
}

var urls = []any{nil, "https://example.com/x", "http://example.com", "https://u:p@example.com/?q=1#f", "https://", ":bad", "x"}

// clients are webhooks at URLs, including unreachable ones.
func clients() []any {
	out := []any{nil, map[string]any{}, map[string]any{"url": "https://example.com/x", "caBundle": "bm8gY2VydGlmaWNhdGU="}}
	for _, u := range urls {
		out = append(out, map[string]any{"url": u})
	}
	return out
}

// vocabulary has, for every kind of object, the keys and values to try.
var vocabulary = map[string]map[string][]any{
	"definition": {"spec": {map[string]any{}}},
	"metadata": {
		"name": {"wrong.example.com", "kettles.kitchen.example.com", "A", ""}, "generateName": {"kett"},
		"annotations": {
			map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/78458"}, map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"},
			map[string]any{"api-approved.kubernetes.io": "nonsense"}, map[string]any{"api-approved.kubernetes.io": ""}, map[string]any{},
		},
	},
	"spec": {
		"group": {"", "nodots", "Bad_Group.example.com", "other.example.com", "new.k8s.io", "apps.kubernetes.io", "a..b"}, "scope": {"", "Cluster", "Namespaced", "Planet"},
		"preserveUnknownFields": {true, false}, "versions": {[]any{}, nil},
		"conversion": {nil, map[string]any{"strategy": "None"}, map[string]any{"strategy": "Webhook"}, map[string]any{"strategy": "", "webhook": map[string]any{}}},
	},
	"names": {
		"plural": {"", "Kettles", "kettles", "ket.tles"}, "singular": {"", "kettle", "K_"}, "kind": {"", "Kettle", "KettleList", "9K"}, "listKind": {"", "Kettle", "KettleList", "_"},
		"shortNames": {[]any{"K", "ok", ""}, nil}, "categories": {[]any{"all", "A l l"}, nil},
	},
	"conversion": {"strategy": {"None", "Webhook", "Other", ""}, "webhook": {nil, map[string]any{}, map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://x"}}}},
	"webhook": {
		"conversionReviewVersions": {nil, []any{}, []any{"v1"}, []any{"v1", "v1"}, []any{"v2"}, []any{"v1beta1", "V_"}},
		"clientConfig":             clients(),
	},
	"clientConfig": {
		"url":      urls,
		"service":  {nil, map[string]any{}, map[string]any{"name": "a", "namespace": "b", "port": 0}, map[string]any{"name": "a", "namespace": "b", "path": "//"}},
		"caBundle": {nil, "", "bm8gY2VydGlmaWNhdGU=", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=", "LS0tLS1CRUdJTiBLRVktLS0tLQpBQUFBCi0tLS0tRU5EIEtFWS0tLS0tCg=="},
	},
	"service": {"name": {"", "a"}, "namespace": {"", "b"}, "path": {nil, "", "/", "//", "/a//b/", "/a/b/", "/A/_", "x/y", "/a/b//"}, "port": {nil, 0, 443, 70000, -1}},
	"versions": {
		"name": {"", "v1", "v2alpha1", "V1", "v1.1"}, "served": {true, false}, "storage": {true, false}, "deprecated": {true, false},
		"deprecationWarning":       {nil, "", "old", "two\nlines", strings.Repeat("long", 70), "\u0000"},
		"schema":                   {nil, map[string]any{}, map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}, map[string]any{"openAPIV3Schema": map[string]any{}}},
		"subresources":             {nil, map[string]any{}, map[string]any{"status": map[string]any{}}, map[string]any{"scale": map[string]any{}}},
		"selectableFields":         {nil, []any{}, []any{map[string]any{"jsonPath": ".metadata.name"}}, []any{map[string]any{"jsonPath": ""}, map[string]any{"jsonPath": ".spec"}}, fields(9), []any{map[string]any{"jsonPath": ".spec.colour"}, map[string]any{"jsonPath": ".spec.colour"}}},
		"additionalPrinterColumns": {nil, []any{}, some(columns, 3), some(columns, 5)},
	},
	"selectableFields":         {"jsonPath": {"", ".", ".spec", ".spec.heat", ".spec.colour", ".spec['colour']", ".metadata.name", "spec", ".spec.tags.x", ".spec.nothing"}},
	"additionalPrinterColumns": columns,
	"subresources":             {"status": {nil, map[string]any{}}, "scale": {nil, map[string]any{}, map[string]any{"specReplicasPath": ".status.x", "statusReplicasPath": "x", "labelSelectorPath": ".x"}, map[string]any{"specReplicasPath": ".spec", "statusReplicasPath": ".", "labelSelectorPath": "status"}}},
	"scale":                    {"specReplicasPath": {"", ".spec.x", ".status.x", "x", ".specx"}, "statusReplicasPath": {"", ".status.x", ".spec.x", "status"}, "labelSelectorPath": {nil, "", ".spec.x", ".x", "x"}},
	"rule":                     rule,
	"schema": {
		"id": {"x"}, "$schema": {"x"}, "$ref": {"#/x", "%zz"}, "description": {"text"}, "title": {"text"},
		"type":     {"", "string", "object", "array", "integer", "boolean", "number", "null", "thing"},
		"nullable": {true, false}, "format": {"", "int32", "date", "colour"}, "uniqueItems": {true}, "exclusiveMinimum": {true},
		"default":   {nil, "x", 1, true, map[string]any{}, map[string]any{"a": "x"}, []any{}, []any{"a", "a"}, map[string]any{"metadata": map[string]any{"name": "X", "unknown": 1}}},
		"maxLength": numbers, "minLength": numbers, "maxItems": numbers, "minItems": numbers, "maxProperties": numbers, "minProperties": numbers, "minimum": numbers, "maximum": numbers,
		"pattern": {"^a+$", "("}, "enum": {[]any{}, []any{"a", "b"}, []any{1}}, "required": {[]any{}, []any{"a"}, []any{"name"}, []any{"spec", "spec"}},
		"properties": {nil, map[string]any{}, map[string]any{"name": map[string]any{"type": "string"}}, map[string]any{"metadata": map[string]any{"type": "object", "default": map[string]any{}}}},
		"items":      {nil, map[string]any{}, map[string]any{"type": "object"}, map[string]any{"type": "object", "nullable": true, "properties": map[string]any{"name": map[string]any{"type": "string"}}}, []any{map[string]any{"type": "string"}}, []any{}},
		"allOf":      {[]any{}, []any{map[string]any{"maxLength": 1}}, []any{map[string]any{"type": "string", "default": "x"}}}, "anyOf": {[]any{map[string]any{"required": []any{"a"}}}}, "oneOf": {[]any{map[string]any{"properties": map[string]any{"nowhere": map[string]any{"minimum": 1}}}}},
		"not":                                  {map[string]any{}, map[string]any{"required": []any{"a"}}, map[string]any{"x-kubernetes-list-type": "set"}},
		"additionalProperties":                 {nil, true, false, map[string]any{"type": "string"}, map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string", "default": "b"}}}},
		"patternProperties":                    {map[string]any{}, map[string]any{"a": map[string]any{"type": "string", "default": 1}}},
		"dependencies":                         {map[string]any{}, map[string]any{"a": []any{"b"}, "b": map[string]any{"type": "null"}}},
		"additionalItems":                      {true, map[string]any{"type": "string"}},
		"definitions":                          {map[string]any{}, map[string]any{"b": map[string]any{"type": "null"}, "a": map[string]any{"uniqueItems": true}}},
		"externalDocs":                         {map[string]any{"url": "https://example.com"}},
		"example":                              {1, "x", nil},
		"x-kubernetes-preserve-unknown-fields": {true, false},
		"x-kubernetes-embedded-resource":       {true, false},
		"x-kubernetes-int-or-string":           {true, false},
		"x-kubernetes-list-type":               {"atomic", "set", "map", "other", ""},
		"x-kubernetes-list-map-keys":           {[]any{}, []any{"name"}, []any{"name", "name"}, []any{"missing"}, []any{"spec"}},
		"x-kubernetes-map-type":                {"atomic", "granular", "other", ""},
		"x-kubernetes-validations":             {[]any{}, some(rule, 1), some(rule, 4), []any{map[string]any{"rule": rules[3]}, map[string]any{"rule": rules[3]}}, []any{map[string]any{"rule": rules[1]}}, []any{map[string]any{"rule": rules[2], "messageExpression": "'x'"}}},
	},
}
