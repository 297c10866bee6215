// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// definer makes definitions of custom resources, most of which are right.
type definer struct {
	*rand.Rand
}

// oneIn is true once in n times.
func (d definer) oneIn(n int) bool { return d.IntN(n) == 0 }

// one picks a value.
func one[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// What conversations define. Its group is put in when it is sent.
const (
	groupMark = "GROUP.example.com"
	plural    = "things"
)

// definition returns a definition in one to three versions.
func (d definer) definition() map[string]any {
	names := []string{"v1"}
	if d.oneIn(3) {
		names = append(names, "v1beta1")
		if d.oneIn(3) {
			names = append(names, "v2alpha1")
		}
	}
	first := d.root()
	var versions []any
	for i, name := range names {
		schema := first
		if i > 0 && d.oneIn(2) {
			schema = d.root()
		}
		version := map[string]any{"name": name, "served": true, "storage": i == 0, "schema": map[string]any{"openAPIV3Schema": clone(schema)}}
		d.decorate(version, schema)
		versions = append(versions, version)
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + groupMark},
		"spec": map[string]any{
			"group": groupMark, "scope": one(d.Rand, "Namespaced", "Namespaced", "Cluster"),
			"names":    map[string]any{"plural": plural, "kind": "Thing"},
			"versions": versions,
		},
	}
}

// decorate adds what a version has beside its schema.
func (d definer) decorate(version, schema map[string]any) {
	sub := map[string]any{}
	if d.IntN(3) > 0 {
		sub["status"] = map[string]any{}
	}
	if d.oneIn(2) {
		scale := map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
		if d.oneIn(2) {
			scale["labelSelectorPath"] = one(d.Rand, ".status.selector", ".spec.s1")
		}
		sub["scale"] = scale
	}
	if len(sub) > 0 {
		version["subresources"] = sub
	}
	var columns []any
	for range d.IntN(4) {
		column := map[string]any{"name": one(d.Rand, "A", "B", "Age", "Ready"), "type": one(d.Rand, "string", "integer", "number", "boolean", "date"),
			"jsonPath": one(d.Rand, ".spec.s1", ".spec.i1", ".spec.list[0]", ".spec.list[*].name", ".metadata.creationTimestamp", ".status.conditions[?(@.type==\"Ready\")].status",
				".spec", ".metadata.labels.a", ".spec.o1.s1", ".spec.b1", ".metadata.name", ".spec.map")}
		if d.oneIn(3) {
			column["priority"] = 1
		}
		if d.oneIn(3) {
			column["format"] = one(d.Rand, "int32", "date-time", "name")
		}
		columns = append(columns, column)
	}
	if columns != nil {
		version["additionalPrinterColumns"] = columns
	}
	if d.oneIn(2) {
		var fields []any
		properties, _ := schema["properties"].(map[string]any)
		spec, _ := properties["spec"].(map[string]any)
		inner, _ := spec["properties"].(map[string]any)
		for _, name := range []string{"s1", "i1", "b1"} {
			if _, has := inner[name]; has && d.oneIn(2) || d.oneIn(20) {
				fields = append(fields, map[string]any{"jsonPath": ".spec." + name})
			}
		}
		if fields != nil {
			version["selectableFields"] = fields
		}
	}
	if d.oneIn(8) {
		version["deprecated"] = true
		if d.oneIn(2) {
			version["deprecationWarning"] = "old things"
		}
	}
}

// root is the schema of an object.
func (d definer) root() map[string]any {
	if d.oneIn(25) {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	spec := d.object(3)
	inner, _ := spec["properties"].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
	}
	if d.oneIn(2) {
		inner["replicas"] = map[string]any{"type": "integer", "minimum": 0}
	}
	if inner["s1"] == nil && d.oneIn(2) {
		inner["s1"] = d.text()
	}
	if inner["list"] == nil && d.oneIn(2) {
		inner["list"] = d.array(2)
	}
	if _, open := spec["additionalProperties"]; !open {
		spec["properties"] = inner
	}
	delete(spec, "nullable")
	status := d.object(2)
	if properties, ok := status["properties"].(map[string]any); ok {
		properties["replicas"] = map[string]any{"type": "integer"}
		properties["selector"] = map[string]any{"type": "string"}
		properties["conditions"] = map[string]any{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
			"items": map[string]any{"type": "object", "required": []any{"type"}, "properties": map[string]any{
				"type": map[string]any{"type": "string"}, "status": map[string]any{"type": "string", "enum": []any{"True", "False"}}}}}
	}
	root := map[string]any{"type": "object", "properties": map[string]any{"spec": spec, "status": status}}
	if d.oneIn(4) {
		root["properties"].(map[string]any)["top"] = d.value(2)
	}
	if d.oneIn(6) {
		root["required"] = []any{"spec"}
	}
	if d.oneIn(6) {
		root["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object", "properties": map[string]any{
			"name": map[string]any{"type": "string", "maxLength": one(d.Rand, 1, 20), "pattern": "^n"}}}
	}
	if d.oneIn(6) {
		root["x-kubernetes-validations"] = []any{d.rule("self.metadata.name.startsWith('n')", "has(self.spec)", "!has(oldSelf.spec) || has(self.spec)",
			"!has(self.spec) || !has(self.spec.s1) || self.spec.s1 != self.metadata.name", "has(self.status) || has(self.spec)")}
	}
	return root
}

// value is a schema of anything.
func (d definer) value(depth int) map[string]any {
	kinds := []func() map[string]any{d.text, d.text, d.whole, d.whole, d.number, d.truth, d.either, d.anything}
	if depth > 0 {
		kinds = append(kinds, func() map[string]any { return d.object(depth) }, func() map[string]any { return d.object(depth) },
			func() map[string]any { return d.array(depth) }, func() map[string]any { return d.array(depth) }, func() map[string]any { return d.dictionary(depth) }, d.embedded)
	}
	made := kinds[d.IntN(len(kinds))]()
	if d.oneIn(8) {
		made["nullable"] = true
	}
	if d.oneIn(12) {
		made["description"] = "what it is"
	}
	return made
}

// rule is a rule with whatever else it may have.
func (d definer) rule(from ...string) map[string]any {
	rule := map[string]any{"rule": from[d.IntN(len(from))]}
	if d.oneIn(2) {
		rule["message"] = one(d.Rand, "must be right", "wrong")
	}
	if d.oneIn(4) {
		rule["messageExpression"] = one(d.Rand, "'so: ' + string(type(self) == string ? 'text' : 'other')", "'fixed'", "''", "'  '", "'a\\nb'")
	}
	if d.oneIn(4) {
		rule["reason"] = one(d.Rand, "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
	}
	if d.oneIn(10) {
		rule["optionalOldSelf"] = true
		rule["rule"] = one(d.Rand, "!oldSelf.hasValue() || oldSelf.value() == self", "oldSelf.hasValue()", "oldSelf.orValue(self) == self", "!oldSelf.hasValue()")
	}
	return rule
}

func (d definer) rules(made map[string]any, from ...string) {
	for range 2 {
		if d.oneIn(6) {
			list, _ := made["x-kubernetes-validations"].([]any)
			made["x-kubernetes-validations"] = append(list, d.rule(from...))
		}
	}
}

func (d definer) text() map[string]any {
	made := map[string]any{"type": "string"}
	switch d.IntN(9) {
	case 0:
		made["enum"] = []any{"a", "b", "c"}
	case 1:
		made["minLength"] = one(d.Rand, 1, 2)
	case 2:
		made["maxLength"] = one(d.Rand, 3, 0, 10)
	case 3:
		made["pattern"] = one(d.Rand, "^[a-z]*$", "b+", "^$")
	case 4:
		made["format"] = one(d.Rand, "date-time", "date", "duration", "ipv4", "ipv6", "cidr", "uri", "email", "byte", "uuid", "hostname", "password", "int32", "mac",
			"k8s-short-name", "k8s-long-name", "bsonobjectid", "isbn", "creditcard", "hexcolor", "unheardof", "datetime", "ssn", "uuid4", "rgbcolor")
	}
	if d.oneIn(5) {
		made["default"] = one(d.Rand, "a", "b", "ab", "")
	}
	if d.oneIn(12) {
		made[one(d.Rand, "anyOf", "oneOf", "allOf")] = []any{map[string]any{"pattern": "^a"}, map[string]any{"maxLength": 1}, map[string]any{"enum": []any{"b", "ab"}}}
	}
	if d.oneIn(20) {
		made["not"] = map[string]any{"pattern": "b$"}
	}
	d.rules(made, "self.size() < 3", "self.startsWith('a')", "self == oldSelf", "self.matches('^[a-z]*$')", "self != 'b' || oldSelf == 'a'", "self in ['a', 'b', 'ab']",
		"self.lowerAscii() == self", "isURL(self) || self.size() < 4", "int(self) > 0", "self.split('').size() < 3", "!format.dns1123Label().validate(self).hasValue()")
	return made
}

func (d definer) whole() map[string]any {
	made := map[string]any{"type": "integer"}
	switch d.IntN(6) {
	case 0:
		made["minimum"], made["maximum"] = 0, 10
	case 1:
		made["multipleOf"] = 2
	case 2:
		made["format"] = one(d.Rand, "int32", "int64", "double")
	case 3:
		made["enum"] = []any{1, 2, 3}
	case 4:
		made["maximum"], made["exclusiveMaximum"] = 3, true
	}
	if d.oneIn(5) {
		made["default"] = one(d.Rand, 1, 2, 0)
	}
	d.rules(made, "self > 0", "self >= oldSelf", "self % 2 == 0", "self == oldSelf", "self / (self - 1) > 0", "self < 3 || oldSelf > 1")
	return made
}

func (d definer) number() map[string]any {
	made := map[string]any{"type": "number"}
	switch d.IntN(5) {
	case 0:
		made["minimum"], made["exclusiveMinimum"] = 0, true
	case 1:
		made["multipleOf"] = 0.5
	case 2:
		made["format"] = one(d.Rand, "float", "double")
	}
	if d.oneIn(5) {
		made["default"] = one(d.Rand, 1.5, 2.0, 0.0)
	}
	d.rules(made, "self > 0.0", "self >= oldSelf", "double(self) < 3.0")
	return made
}

func (d definer) truth() map[string]any {
	made := map[string]any{"type": "boolean"}
	if d.oneIn(4) {
		made["default"] = d.oneIn(2)
	}
	d.rules(made, "self", "!oldSelf || self", "self == oldSelf")
	return made
}

func (d definer) either() map[string]any {
	made := map[string]any{"x-kubernetes-int-or-string": true}
	if d.oneIn(3) {
		made["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	}
	if d.oneIn(3) {
		made["pattern"] = "^[0-9]+%?$"
	}
	if d.oneIn(4) {
		made["default"] = one[any](d.Rand, 1, "1%")
	}
	d.rules(made, "type(self) == int", "type(self) == string ? self.endsWith('%') : self > 0", "self == oldSelf")
	return made
}

func (d definer) anything() map[string]any {
	made := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	if d.oneIn(2) {
		made["type"] = "object"
		d.rules(made, "!has(self.x)", "self == oldSelf")
	}
	return made
}

func (d definer) embedded() map[string]any {
	made := map[string]any{"type": "object", "x-kubernetes-embedded-resource": true}
	if d.oneIn(2) {
		made["x-kubernetes-preserve-unknown-fields"] = true
	} else {
		made["properties"] = map[string]any{"spec": d.object(1)}
	}
	d.rules(made, "self.kind == 'Pod'", "self.metadata.name != 'x'")
	return made
}

func (d definer) dictionary(depth int) map[string]any {
	made := map[string]any{"type": "object", "additionalProperties": d.value(depth - 1)}
	if d.oneIn(3) {
		made["maxProperties"] = one(d.Rand, 1, 2)
	}
	if d.oneIn(4) {
		made["x-kubernetes-map-type"] = one(d.Rand, "granular", "atomic")
	}
	d.rules(made, "self.all(k, k.startsWith('a'))", "size(self) < 3", "'a' in self", "self == oldSelf", "oldSelf.all(k, k in self)")
	return made
}

// object has some of a few fields, so that conversations of different schemas are alike.
func (d definer) object(depth int) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, name := range []string{"s1", "i1", "b1", "o1", "list", "map", "name", "x", "n1"} {
		if !d.oneIn(3) {
			continue
		}
		switch {
		case name[0] == 's' || name == "name":
			properties[name] = d.text()
		case name[0] == 'i':
			properties[name] = d.whole()
		case name[0] == 'b':
			properties[name] = d.truth()
		case name == "o1" && depth > 0:
			properties[name] = d.object(depth - 1)
		case name == "list" && depth > 0:
			properties[name] = d.array(depth - 1)
		case name == "map" && depth > 0:
			properties[name] = d.dictionary(depth - 1)
		default:
			properties[name] = d.value(depth - 1)
		}
		if d.oneIn(8) {
			required = append(required, name)
		}
	}
	made := map[string]any{"type": "object"}
	if len(properties) > 0 {
		made["properties"] = properties
	}
	if len(required) > 0 {
		made["required"] = required
	}
	if d.oneIn(10) {
		made["x-kubernetes-preserve-unknown-fields"] = true
	}
	if d.oneIn(10) {
		made["x-kubernetes-map-type"] = one(d.Rand, "atomic", "granular")
	}
	if d.oneIn(6) && len(required) == 0 {
		made["default"] = map[string]any{}
	}
	if d.oneIn(10) {
		made[one(d.Rand, "minProperties", "maxProperties")] = one(d.Rand, 1, 2)
	}
	if d.oneIn(10) && properties["s1"] != nil && properties["i1"] != nil {
		made[one(d.Rand, "oneOf", "anyOf")] = []any{map[string]any{"required": []any{"s1"}}, map[string]any{"required": []any{"i1"}}}
	}
	var about []string
	for _, name := range []string{"s1", "i1", "b1", "list", "map", "o1", "x"} {
		if properties[name] == nil {
			continue
		}
		about = append(about, "has(self."+name+")", fmt.Sprintf("!has(self.%s) || !has(oldSelf.%[1]s) || self.%[1]s == oldSelf.%[1]s", name), "has(oldSelf."+name+") == has(self."+name+")")
	}
	if len(about) > 0 {
		d.rules(made, about...)
		if list, ok := made["x-kubernetes-validations"].([]any); ok && d.oneIn(3) {
			list[0].(map[string]any)["fieldPath"] = "." + one(d.Rand, "s1", "i1", "o1", "list")
		}
	}
	return made
}

// array is a list of any type.
func (d definer) array(depth int) map[string]any {
	made := map[string]any{"type": "array"}
	switch choice := d.IntN(5); {
	case choice == 0:
		made["x-kubernetes-list-type"] = "set"
		made["items"] = one(d.Rand, d.text, d.whole)()
	case choice <= 2:
		made["x-kubernetes-list-type"] = "map"
		keys := []any{"name"}
		item := d.object(max(depth-1, 0))
		properties, _ := item["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
			item["properties"] = properties
		}
		properties["name"] = map[string]any{"type": "string"}
		required := []any{"name"}
		if d.oneIn(2) {
			keys = append(keys, "i1")
			properties["i1"] = map[string]any{"type": "integer", "default": 1}
			if d.oneIn(3) {
				delete(properties["i1"].(map[string]any), "default")
				required = append(required, "i1")
			}
		}
		item["required"] = required
		delete(item, "default")
		made["items"], made["x-kubernetes-list-map-keys"] = item, keys
	default:
		if d.oneIn(2) {
			made["x-kubernetes-list-type"] = "atomic"
		}
		made["items"] = d.value(depth - 1)
	}
	if d.oneIn(3) {
		made["maxItems"] = one(d.Rand, 1, 2, 5)
	}
	if d.oneIn(8) {
		made["minItems"] = 1
	}
	if d.oneIn(8) {
		made["default"] = []any{}
	}
	d.rules(made, "size(self) < 3", "self == oldSelf", "oldSelf.all(x, x in self)", "self.exists(x, x == x)", "self.all(x, has(x.s1))", "self.isSorted()")
	if made["items"] != nil && slices.Contains([]int{0}, d.IntN(15)) {
		delete(made["items"].(map[string]any), "type")
	}
	return made
}
