// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
)

// instance returns a value that the schema more or less allows.
func (d definer) instance(schema map[string]any, depth int) any {
	if d.oneIn(40) {
		return one[any](d.Rand, nil, "", "text", 7, -1, 1.5, true, []any{}, map[string]any{}, []any{"a", "a"}, map[string]any{"unknown": 1})
	}
	if schema == nil || depth <= 0 {
		return one[any](d.Rand, "a", 1, true, map[string]any{"x": 1}, []any{"x"}, nil)
	}
	if either, _ := schema["x-kubernetes-int-or-string"].(bool); either {
		return one[any](d.Rand, 1, "1", "50%", 0, "x")
	}
	if values, ok := schema["enum"].([]any); ok && !d.oneIn(8) {
		return values[d.IntN(len(values))]
	}
	switch schema["type"] {
	case "string":
		return d.instanceOfText(schema)
	case "integer":
		return one[any](d.Rand, 0, 1, 2, 3, 4, 2, 1, 10, 11, -1, 2.0, 1<<40)
	case "number":
		return one[any](d.Rand, 0, 1, 0.5, 1.5, 2, -1, 3, 1e3, 0.1)
	case "boolean":
		return d.oneIn(2)
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range d.IntN(4) {
			list = append(list, d.instance(items, depth-1))
		}
		return list
	case "object":
		return d.instanceOfObject(schema, depth)
	}
	return one[any](d.Rand, "a", 1, map[string]any{"x": 1, "y": map[string]any{"z": nil}}, []any{1, "a"}, nil, 1.5)
}

func (d definer) instanceOfText(schema map[string]any) any {
	if samples := formats[asText(schema["format"])]; samples != nil && !d.oneIn(4) {
		return samples[d.IntN(len(samples))]
	}
	return one(d.Rand, "a", "b", "c", "ab", "", "abb", "x", "é", "a b", "A", "1")
}

func asText(value any) string {
	text, _ := value.(string)
	return text
}

// formats has texts of each format, some of them nearly.
var formats = map[string][]string{
	"date-time":      {"2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5+01:00", "2020-13-01T00:00:00Z", "2020-01-01t00:00:00z", "2020-01-01 00:00:00Z", "2020-01-01T24:00:00Z"},
	"datetime":       {"2020-01-01T00:00:00Z", "x"},
	"date":           {"2020-01-01", "2020-1-1", "2020-02-30"},
	"duration":       {"1s", "1h30m", "3 days", "1", "P1D", "1.5h", "1 week", "-1s", "0"},
	"ipv4":           {"127.0.0.1", "127.0.0.01", "::1", "256.0.0.1"},
	"ipv6":           {"::1", "fe80::1%eth0", "127.0.0.1", "::ffff:1.2.3.4"},
	"cidr":           {"10.0.0.0/8", "10.0.0.1/8", "10.0.0.0", "::/0", "010.0.0.0/8"},
	"uri":            {"https://example.com", "/path", "x", "http://", "mailto:a@b", "http://a b"},
	"email":          {"a@example.com", "a", "A <a@example.com>", "a@localhost", "\"a b\"@example.com"},
	"byte":           {"YQ==", "YQ", "%", "a_-=", "YQ=="},
	"uuid":           {"8d3d7c8e-9a0a-4c5e-8f6f-0123456789ab", "8D3D7C8E-9A0A-4C5E-8F6F-0123456789AB", "8d3d7c8e9a0a4c5e8f6f0123456789ab", "x"},
	"uuid4":          {"8d3d7c8e-9a0a-4c5e-8f6f-0123456789ab", "8d3d7c8e-9a0a-1c5e-8f6f-0123456789ab"},
	"hostname":       {"example.com", "a_b", "-a", "localhost", "a..b", "127.0.0.1"},
	"mac":            {"00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "x"},
	"k8s-short-name": {"a-b", "A", "a.b"},
	"k8s-long-name":  {"a.b", "a..b", "A.b"},
	"bsonobjectid":   {"507f1f77bcf86cd799439011", "x"},
	"isbn":           {"9780306406157", "0-306-40615-2", "1"},
	"creditcard":     {"4111111111111111", "4111-1111-1111-1111", "1"},
	"hexcolor":       {"#fff", "#FFFFFF", "fff", "#ggg"},
	"rgbcolor":       {"rgb(1,2,3)", "rgb(1, 2, 3)", "rgb(256,0,0)"},
	"ssn":            {"123-45-6789", "123456789", "x"},
	"unheardof":      {"x"},
	"int32":          {"x", "1"},
}

func (d definer) instanceOfObject(schema map[string]any, depth int) any {
	object := map[string]any{}
	if embedded, _ := schema["x-kubernetes-embedded-resource"].(bool); embedded {
		object = map[string]any{"apiVersion": one[any](d.Rand, "v1", "v1", "apps/v1", "a/b/c", ""), "kind": one[any](d.Rand, "Pod", "Pod", "pod", "")}
		if d.oneIn(2) {
			object["metadata"] = map[string]any{"name": one(d.Rand, "x", "A", ""), one(d.Rand, "labels", "unknown", "annotations", "finalizers", "creationTimestamp"): one[any](d.Rand, map[string]any{"a": "b"}, nil, "x", []any{"a/b"})}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if needed := slices.Contains(required, any(name)); d.IntN(5) < 2 && (!needed || d.oneIn(6)) {
			continue
		}
		inner, _ := properties[name].(map[string]any)
		object[name] = d.instance(inner, depth-1)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		for range d.IntN(3) {
			object[one(d.Rand, "a", "b", "ab", "a/b", "")] = d.instance(values, depth-1)
		}
	}
	if d.oneIn(15) {
		object[one(d.Rand, "unknown", "S1", "x", "self")] = one[any](d.Rand, 1, "a", nil, map[string]any{"y": 1})
	}
	return object
}

// object returns an object of the version, with or without a name.
func (c *talk) object(version, name string) map[string]any {
	d := c.definer
	schema := c.schemas[version]
	object, _ := d.instance(schema, 7).(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	object["apiVersion"], object["kind"] = groupMark+"/"+version, "Thing"
	if !d.status() {
		delete(object, "status")
	}
	metadata := map[string]any{}
	if name != "" {
		metadata["name"] = name
	}
	if d.oneIn(2) {
		metadata["labels"] = map[string]any{one(d.Rand, "a", "b"): one(d.Rand, "x", "y", "")}
	}
	if d.oneIn(5) {
		metadata["annotations"] = map[string]any{"example.com/a": one(d.Rand, "x", "y")}
	}
	if d.oneIn(8) {
		metadata["finalizers"] = []any{"example.com/f"}
	}
	if d.oneIn(15) {
		field := one(d.Rand, "generation", "deletionTimestamp", "creationTimestamp", "uid", "selfLink", "managedFields", "ownerReferences", "deletionGracePeriodSeconds", "namespace", "labels", "unknown", "resourceVersion", "generateName", "finalizers")
		metadata[field] = one[any](d.Rand, 7, "x", nil, []any{}, map[string]any{}, "2020-01-01T00:00:00Z", []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"}})
		if field == "resourceVersion" {
			metadata[field] = "${rv}"
		}
	}
	object["metadata"] = metadata
	return object
}

// status says whether an object is sent with one.
func (d definer) status() bool { return d.oneIn(3) }

// fragment keeps some of an object's fields.
func (d definer) fragment(object map[string]any) map[string]any {
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch inner := object[key].(type) {
		case map[string]any:
			if d.IntN(4) > 0 {
				kept[key] = d.fragment(inner)
			}
		default:
			if d.oneIn(2) {
				kept[key] = inner
			}
		}
	}
	return kept
}

// paths lists the JSON pointers of an object's values.
func paths(at string, value any) []string {
	found := []string{at}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, paths(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), value[key])...)
		}
	case []any:
		if len(value) > 0 {
			found = append(found, paths(at+"/0", value[0])...)
		}
		found = append(found, at+"/-")
	}
	return found
}
