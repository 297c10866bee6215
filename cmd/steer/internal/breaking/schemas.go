// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package breaking

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

const (
	preserve    = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
)

// schemas compares the schemas of a field.
func (c *comparison) schemas(path string, was, is object) {
	if was == nil || is == nil {
		return
	}
	if typeChanged(was, is) {
		c.note(path, "the type was %v and is %v", typeOf(was), typeOf(is))
		return // what is below follows from it
	}
	if was["nullable"] == true && is["nullable"] != true {
		c.note(path, "null is refused")
	}
	if was[preserve] == true && is[preserve] != true {
		c.note(path, "unknown fields are pruned")
	}
	c.numbers(path, was, is)
	c.texts(path, was, is)
	c.enums(path, was, is)
	c.rules(path, was, is)
	for _, name := range []string{"x-kubernetes-list-type", "x-kubernetes-map-type"} {
		c.differs(path, name, was[name], is[name])
	}
	c.differs(path, "x-kubernetes-list-map-keys", text(was["x-kubernetes-list-map-keys"]), text(is["x-kubernetes-list-map-keys"]))
	if before, after := text(was["default"]), text(is["default"]); before != nil && before != after {
		c.differs(path, "the default", before, after)
	}
	c.fields(path, was, is)
	c.schemas(path+"[]", child(was, "items"), child(is, "items"))
	c.additional(path, was, is)
}

func typeOf(schema object) any {
	if schema[intOrString] == true {
		return "integer or string"
	}
	return orNone(schema["type"])
}

// typeChanged reports whether values of the type that was are not all of the type that is.
func typeChanged(was, is object) bool {
	before, after := typeOf(was), typeOf(is)
	switch {
	case before == after, is["type"] == nil && is[intOrString] == nil:
		return false
	case before == "integer" && (after == "number" || after == "integer or string"), before == "string" && after == "integer or string":
		return false
	}
	return true
}

// numbers compares the limits.
func (c *comparison) numbers(path string, was, is object) {
	for _, bound := range []struct {
		names    []string
		tightens func(before, after float64) bool
	}{
		{[]string{"maximum", "maxLength", "maxItems", "maxProperties"}, func(before, after float64) bool { return after < before }},
		{[]string{"minimum", "minLength", "minItems", "minProperties"}, func(before, after float64) bool { return after > before }},
	} {
		for _, name := range bound.names {
			after, ok := number(is[name])
			if !ok {
				continue
			}
			before, had := number(was[name])
			if !had && strings.HasPrefix(name, "min") && name != "minimum" && after == 0 {
				continue
			}
			if !had || bound.tightens(before, after) {
				c.differs(path, name, was[name], is[name])
			}
		}
	}
	for _, name := range []string{"exclusiveMaximum", "exclusiveMinimum", "uniqueItems"} {
		if is[name] == true && was[name] != true {
			c.note(path, "%s is set", name)
		}
	}
	if is["multipleOf"] != nil {
		c.differs(path, "multipleOf", was["multipleOf"], is["multipleOf"])
	}
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case int64:
		return float64(value), true
	}
	return 0, false
}

// texts compares what strings have to be like.
func (c *comparison) texts(path string, was, is object) {
	for _, name := range []string{"pattern", "format"} {
		// int32 and its like say how Go holds a number; the values are bounded by them.
		if is[name] != nil && !(was[name] == "int32" && is[name] == "int64") {
			c.differs(path, name, was[name], is[name])
		}
	}
}

// enums compares the values that a field may have.
func (c *comparison) enums(path string, was, is object) {
	after, ok := is["enum"].([]any)
	if !ok {
		return
	}
	before, ok := was["enum"].([]any)
	if !ok {
		c.note(path, "only %v are valid any more", text(is["enum"]))
		return
	}
	for _, value := range before {
		if !slices.ContainsFunc(after, func(v any) bool { return text(v) == text(value) }) {
			c.note(path, "the value %v is removed from the enum", text(value))
		}
	}
}

// rules compares validation rules by their text: whether a changed one is stricter
// cannot be known.
func (c *comparison) rules(path string, was, is object) {
	for _, rule := range list(is, "x-kubernetes-validations") {
		if !slices.ContainsFunc(list(was, "x-kubernetes-validations"), func(r object) bool { return r["rule"] == rule["rule"] }) {
			c.note(path, "the rule %v is new or changed", rule["rule"])
		}
	}
}

// fields compares properties, and which of them are required.
func (c *comparison) fields(path string, was, is object) {
	before, after := child(was, "properties"), child(is, "properties")
	for _, name := range slices.Sorted(maps.Keys(before)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		now := child(after, name)
		if now == nil {
			if is[preserve] != true {
				c.note(at, "the field is removed: it is pruned")
			}
			continue
		}
		c.schemas(at, child(before, name), now)
	}
	required, _ := is["required"].([]any)
	had, _ := was["required"].([]any)
	for _, name := range required {
		name, _ := name.(string)
		if !slices.Contains(had, any(name)) && child(after, name)["default"] == nil {
			c.note(strings.TrimPrefix(path+"."+name, "."), "the field is required")
		}
	}
}

// additional compares the values of maps.
func (c *comparison) additional(path string, was, is object) {
	before, after := child(was, "additionalProperties"), child(is, "additionalProperties")
	switch {
	case was["additionalProperties"] == true && after != nil:
		c.note(path, "the values of the map have to be of type %v", typeOf(after))
	case was["additionalProperties"] != nil && is["additionalProperties"] == nil && is[preserve] != true:
		c.note(path, "other keys are pruned")
	default:
		c.schemas(path+"{}", before, after)
	}
}

// text is a value in JSON; nil for none.
func text(value any) any {
	if value == nil {
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return string(data)
}
