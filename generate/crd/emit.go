// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/steer-dev/steer/generate/yaml"
)

// emitter writes definitions. A schema that occurs again at the same depth is
// copied from where it was written first.
type emitter struct {
	maxDescription *int

	out     []byte   // the document being written
	written [][]byte // finished documents
	at      map[place]span
}

type place struct {
	schema *Schema
	column int
}

type span struct{ document, start, end int }

func newEmitter(maxDescription *int) *emitter {
	return &emitter{maxDescription: maxDescription, at: map[place]span{}}
}

// definition writes a whole document.
func (e *emitter) definition(d *definition) []byte {
	e.out = nil
	e.line(0, "apiVersion", "apiextensions.k8s.io/v1")
	e.line(0, "kind", "CustomResourceDefinition")
	e.open(0, "metadata")
	e.texts(2, "annotations", d.annotations)
	e.texts(2, "labels", d.labels)
	e.line(2, "name", d.plural+"."+d.group)
	e.open(0, "spec")
	if d.conversion != nil {
		e.out = yaml.Value(yaml.Key(e.out, 2, "conversion"), 2, d.conversion.stanza())
	}
	e.line(2, "group", d.group)
	e.open(2, "names")
	e.list(4, "categories", d.categories)
	e.line(4, "kind", d.kind)
	e.line(4, "listKind", d.kind+"List")
	e.line(4, "plural", d.plural)
	e.list(4, "shortNames", d.shortNames)
	if d.singular != "" {
		e.line(4, "singular", d.singular)
	}
	if d.preserveUnknownField != nil {
		e.value(2, "preserveUnknownFields", *d.preserveUnknownField)
	}
	e.line(2, "scope", d.scope)
	e.open(2, "versions")
	for i := range d.versions {
		start := len(e.out)
		e.version(4, &d.versions[i])
		copy(e.out[start+2:], "- ")
	}
	doc := e.out
	e.written = append(e.written, doc)
	return doc
}

func (c *conversionWebhook) stanza() map[string]any {
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	service := map[string]any{
		"name":      or(c.ServiceName, "webhook-service"),
		"namespace": or(c.ServiceNamespace, "system"),
		"path":      or(c.Path, "/convert"),
	}
	if c.ServicePort != 0 {
		service["port"] = int64(c.ServicePort)
	}
	versions := []any{}
	for _, v := range c.ReviewVersions {
		versions = append(versions, v)
	}
	if len(versions) == 0 {
		versions = append(versions, "v1")
	}
	return map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             map[string]any{"service": service},
			"conversionReviewVersions": versions,
		},
	}
}

func (e *emitter) version(column int, v *version) {
	if len(v.columns) > 0 {
		e.open(column, "additionalPrinterColumns")
		for _, c := range v.columns {
			entry := map[string]any{"name": c.Name, "type": c.Type, "jsonPath": c.JSONPath}
			if c.Description != "" {
				entry["description"] = c.Description
			}
			if c.Format != "" {
				entry["format"] = c.Format
			}
			if c.Priority != 0 {
				entry["priority"] = int64(c.Priority)
			}
			e.out = yaml.Item(e.out, column, entry)
		}
	}
	if v.deprecated {
		e.value(column, "deprecated", true)
	}
	if v.warning != nil {
		e.line(column, "deprecationWarning", *v.warning)
	}
	e.line(column, "name", v.name)
	e.open(column, "schema")
	e.child(column+2, "openAPIV3Schema", v.schema)
	if len(v.selectable) > 0 {
		e.open(column, "selectableFields")
		for _, path := range v.selectable {
			e.out = yaml.Item(e.out, column, map[string]any{"jsonPath": path})
		}
	}
	e.value(column, "served", v.served)
	e.value(column, "storage", v.storage)
	if v.hasSubresources {
		subresources := map[string]any{}
		if v.scale != nil {
			scale := map[string]any{"specReplicasPath": v.scale.SpecPath, "statusReplicasPath": v.scale.StatusPath}
			if v.scale.SelectorPath != nil {
				scale["labelSelectorPath"] = *v.scale.SelectorPath
			}
			subresources["scale"] = scale
		}
		if v.status {
			subresources["status"] = map[string]any{}
		}
		e.value(column, "subresources", subresources)
	}
}

func (e *emitter) open(column int, key string) {
	e.out = append(yaml.Key(e.out, column, key), '\n')
}

func (e *emitter) line(column int, key, text string) {
	e.out = yaml.String(yaml.Key(e.out, column, key), column, text)
}

func (e *emitter) value(column int, key string, value any) {
	e.out = yaml.Value(yaml.Key(e.out, column, key), column, value)
}

func (e *emitter) text(column int, key, text string) {
	if text != "" {
		e.line(column, key, text)
	}
}

func (e *emitter) flag(column int, key string, set bool) {
	if set {
		e.value(column, key, true)
	}
}

func (e *emitter) integer(column int, key string, n *int64) {
	if n != nil {
		e.value(column, key, *n)
	}
}

func (e *emitter) number(column int, key string, n *float64) {
	if n != nil {
		e.value(column, key, *n)
	}
}

func (e *emitter) list(column int, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	e.open(column, key)
	for _, text := range texts {
		e.out = yaml.Item(e.out, column, text)
	}
}

func (e *emitter) texts(column int, key string, texts map[string]string) {
	if len(texts) == 0 {
		return
	}
	e.open(column, key)
	for _, name := range slices.SortedFunc(maps.Keys(texts), yaml.Compare) {
		e.line(column+2, name, texts[name])
	}
}

// json writes a value that is kept as JSON.
func (e *emitter) json(column int, key string, text []byte) {
	if text == nil {
		return
	}
	e.value(column, key, decode(text))
}

func decode(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil
	}
	return value
}

// child writes a schema below a key.
func (e *emitter) child(column int, key string, s *Schema) {
	e.out = yaml.Key(e.out, column, key)
	e.nested(column+2, s)
}

// nested writes a schema after "key:" or a dash.
func (e *emitter) nested(column int, s *Schema) {
	mark := len(e.out)
	e.out = append(e.out, '\n')
	e.schema(column, s)
	if len(e.out) == mark+1 {
		e.out = append(e.out[:mark], " {}\n"...)
	}
}

// item writes a schema as an item of a sequence.
func (e *emitter) item(column int, s *Schema) {
	start := len(e.out)
	e.schema(column+2, s)
	if len(e.out) == start {
		e.out = append(yaml.Indent(e.out, column), "- {}\n"...)
		return
	}
	e.out[start+column] = '-'
}

// schema writes the entries of a schema at a column.
func (e *emitter) schema(column int, s *Schema) {
	key := place{s, column}
	if seen, ok := e.at[key]; ok {
		from := e.out
		if seen.document < len(e.written) {
			from = e.written[seen.document]
		}
		e.out = append(e.out, from[seen.start:seen.end]...)
		return
	}
	start := len(e.out)
	e.entries(column, s)
	if s.keys != nil || s.Items != nil || s.Additional != nil || s.Description != "" {
		e.at[key] = span{len(e.written), start, len(e.out)}
	}
}

func (e *emitter) entries(column int, s *Schema) {
	switch {
	case s.Additional != nil:
		e.child(column, "additionalProperties", s.Additional)
	case s.AnyAdditional:
		e.value(column, "additionalProperties", true)
	}
	e.schemas(column, "allOf", s.AllOf)
	e.schemas(column, "anyOf", s.AnyOf)
	e.json(column, "default", s.Default)
	e.text(column, "description", e.description(s.Description))
	if len(s.Enum) > 0 {
		e.open(column, "enum")
		for _, value := range s.Enum {
			e.out = yaml.Item(e.out, column, decode(value))
		}
	}
	e.json(column, "example", s.Example)
	e.flag(column, "exclusiveMaximum", s.ExclusiveMaximum)
	e.flag(column, "exclusiveMinimum", s.ExclusiveMinimum)
	if docs := s.ExternalDocs; docs != nil {
		entry := map[string]any{}
		if docs.Description != "" {
			entry["description"] = docs.Description
		}
		if docs.URL != "" {
			entry["url"] = docs.URL
		}
		e.value(column, "externalDocs", entry)
	}
	e.text(column, "format", s.Format)
	if s.Items != nil {
		e.child(column, "items", s.Items)
	}
	e.integer(column, "maxItems", s.MaxItems)
	e.integer(column, "maxLength", s.MaxLength)
	e.integer(column, "maxProperties", s.MaxProperties)
	e.number(column, "maximum", s.Maximum)
	e.integer(column, "minItems", s.MinItems)
	e.integer(column, "minLength", s.MinLength)
	e.integer(column, "minProperties", s.MinProperties)
	e.number(column, "minimum", s.Minimum)
	e.number(column, "multipleOf", s.MultipleOf)
	e.flag(column, "nullable", s.Nullable)
	e.text(column, "pattern", s.Pattern)
	if len(s.Properties) > 0 {
		e.open(column, "properties")
		for _, name := range s.keys {
			e.child(column+2, name, s.Properties[name])
		}
	}
	e.list(column, "required", s.Required)
	e.text(column, "title", s.Title)
	e.text(column, "type", s.Type)
	e.flag(column, "uniqueItems", s.UniqueItems)
	e.flag(column, "x-kubernetes-embedded-resource", s.EmbeddedResource)
	e.flag(column, "x-kubernetes-int-or-string", s.IntOrString)
	e.list(column, "x-kubernetes-list-map-keys", s.ListMapKeys)
	e.text(column, "x-kubernetes-list-type", s.ListType)
	e.text(column, "x-kubernetes-map-type", s.MapType)
	e.flag(column, "x-kubernetes-preserve-unknown-fields", s.PreserveUnknown)
	e.validations(column, s.Validations)
}

func (e *emitter) schemas(column int, key string, schemas []*Schema) {
	if len(schemas) == 0 {
		return
	}
	e.open(column, key)
	for _, s := range schemas {
		e.item(column, s)
	}
}

func (e *emitter) validations(column int, rules []Validation) {
	if len(rules) == 0 {
		return
	}
	e.open(column, "x-kubernetes-validations")
	for _, rule := range rules {
		start := len(e.out)
		e.text(column+2, "fieldPath", rule.FieldPath)
		e.text(column+2, "message", rule.Message)
		e.text(column+2, "messageExpression", rule.MessageExpression)
		if rule.OptionalOldSelf != nil {
			e.value(column+2, "optionalOldSelf", *rule.OptionalOldSelf)
		}
		e.text(column+2, "reason", rule.Reason)
		e.line(column+2, "rule", rule.Rule)
		e.out[start+column] = '-'
	}
}

// description shortens documentation to the limit: to whole sentences if one
// ends in time, else to whole words.
func (e *emitter) description(text string) string {
	switch {
	case e.maxDescription == nil || *e.maxDescription < 0:
		return text
	case *e.maxDescription == 0:
		return ""
	case len(text) <= *e.maxDescription:
		return text
	}
	text = text[:*e.maxDescription]
	if n := strings.LastIndexFunc(text, func(r rune) bool { return unicode.Is(unicode.STerm, r) }); n > 0 {
		return text[:n+1]
	}
	if n := strings.LastIndexFunc(text, func(r rune) bool { return unicode.Is(unicode.White_Space, r) }); n > 0 {
		return text[:n] + "..."
	}
	return text + "..."
}
