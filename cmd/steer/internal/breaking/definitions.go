// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package breaking finds the changes of CustomResourceDefinitions that clients or stored
// objects do not survive: what was served and is not, and what was valid and is refused
// or pruned.
package breaking

import (
	"fmt"
	"slices"
	"strings"
)

type object = map[string]any

// Change is one change that breaks.
type Change struct {
	// Definition is the name of the CRD.
	Definition string
	// Version and Path say where in it; empty for the whole definition or version.
	Version, Path string
	// Message says what was and what is.
	Message string
}

// String returns for instance "guestbooks.example.com v1 spec.size: maximum was 10 and is 5".
func (c Change) String() string {
	return strings.Join(slices.DeleteFunc([]string{c.Definition, c.Version, c.Path}, func(s string) bool { return s == "" }), " ") + ": " + c.Message
}

// Changes compares definitions, as they are in manifests, with those that were before.
func Changes(before, after []map[string]any) []Change {
	now := map[string]object{}
	for _, crd := range after {
		now[nameOf(crd)] = crd
	}
	var found []Change
	for _, crd := range before {
		name := nameOf(crd)
		c := &comparison{definition: name}
		if is, ok := now[name]; ok {
			c.definitions(child(crd, "spec"), child(is, "spec"))
		} else {
			c.note("", "the definition is removed, and all its objects with it")
		}
		found = append(found, c.changes...)
	}
	return found
}

func nameOf(crd object) string {
	name, _ := child(crd, "metadata")["name"].(string)
	return name
}

// comparison is that of one definition.
type comparison struct {
	definition, version string
	changes             []Change
}

func (c *comparison) note(path, format string, args ...any) {
	c.changes = append(c.changes, Change{c.definition, c.version, path, fmt.Sprintf(format, args...)})
}

// differs notes that a value changed.
func (c *comparison) differs(path, what string, was, is any) {
	if was != is {
		c.note(path, "%s was %v and is %v", what, orNone(was), orNone(is))
	}
}

func orNone(value any) any {
	if value == nil {
		return "not set"
	}
	return value
}

func (c *comparison) definitions(was, is object) {
	c.differs("", "scope", was["scope"], is["scope"])
	for _, name := range []string{"kind", "plural"} {
		c.differs("", name, child(was, "names")[name], child(is, "names")[name])
	}
	versions := map[any]object{}
	for _, v := range list(is, "versions") {
		versions[v["name"]] = v
	}
	for _, before := range list(was, "versions") {
		name, _ := before["name"].(string)
		c.version = name
		after, ok := versions[name]
		switch {
		case before["served"] != true: // no client can use it
			if !ok && before["storage"] == true {
				c.note("", "the version is removed, and was the stored one")
			}
		case !ok:
			c.note("", "the version is removed; serve it until no client and no stored object has it")
		case after["served"] != true:
			c.note("", "the version is not served any more")
		default:
			c.versions(before, after)
		}
	}
	c.version = ""
}

func (c *comparison) versions(was, is object) {
	for _, name := range []string{"status", "scale"} {
		if child(was, "subresources")[name] != nil && child(is, "subresources")[name] == nil {
			c.note("", "the subresource %s is removed", name)
		}
	}
	for _, field := range list(was, "selectableFields") {
		if !slices.ContainsFunc(list(is, "selectableFields"), func(f object) bool { return f["jsonPath"] == field["jsonPath"] }) {
			c.note("", "objects cannot be selected by %v any more", field["jsonPath"])
		}
	}
	c.schemas("", child(child(was, "schema"), "openAPIV3Schema"), child(child(is, "schema"), "openAPIV3Schema"))
}

// child is a field that is an object; nil if it is not there.
func child(o object, name string) object {
	value, _ := o[name].(object)
	return value
}

// list is a field that is a list of objects.
func list(o object, name string) []object {
	values, _ := o[name].([]any)
	var out []object
	for _, value := range values {
		if item, ok := value.(object); ok {
			out = append(out, item)
		}
	}
	return out
}
