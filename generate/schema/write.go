// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/steer-dev/steer/generate/yaml"
)

// Writer writes documents with schemas in them. A schema that occurs again at the
// same depth is copied from where it was written first, be that in an earlier
// document.
type Writer struct {
	yaml.Writer

	maxDescription *int
	written        [][]byte // finished documents
	at             map[place]span
}

type place struct {
	schema *Schema
	column int
}

type span struct{ document, start, end int }

// NewWriter returns a writer that shortens descriptions to a number of bytes, at a
// sentence or word; 0 leaves them out, nil leaves them as they are.
func NewWriter(maxDescription *int) *Writer {
	return &Writer{maxDescription: maxDescription, at: map[place]span{}}
}

// Finish returns the document written so far, and begins the next.
func (w *Writer) Finish() []byte {
	document := w.Out
	w.written, w.Out = append(w.written, document), nil
	return document
}

// json writes a value that is kept as JSON.
func (w *Writer) json(column int, key string, text []byte) {
	if text == nil {
		return
	}
	w.Value(column, key, decode(text))
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

// Child writes a schema below a key.
func (w *Writer) Child(column int, key string, s *Schema) {
	w.Out = yaml.Key(w.Out, column, key)
	w.nested(column+2, s)
}

// nested writes a schema after "key:" or a dash.
func (w *Writer) nested(column int, s *Schema) {
	mark := len(w.Out)
	w.Out = append(w.Out, '\n')
	w.Schema(column, s)
	if len(w.Out) == mark+1 {
		w.Out = append(w.Out[:mark], " {}\n"...)
	}
}

// element writes a schema as an item of a sequence.
func (w *Writer) element(column int, s *Schema) {
	start := len(w.Out)
	w.Schema(column+2, s)
	if len(w.Out) == start {
		w.Out = append(yaml.Indent(w.Out, column), "- {}\n"...)
		return
	}
	w.Out[start+column] = '-'
}

// Schema writes the entries of a schema at a column.
func (w *Writer) Schema(column int, s *Schema) {
	key := place{s, column}
	if seen, ok := w.at[key]; ok {
		from := w.Out
		if seen.document < len(w.written) {
			from = w.written[seen.document]
		}
		w.Out = append(w.Out, from[seen.start:seen.end]...)
		return
	}
	start := len(w.Out)
	w.entries(column, s)
	if s.keys != nil || s.Items != nil || s.Additional != nil || s.Description != "" {
		w.at[key] = span{len(w.written), start, len(w.Out)}
	}
}

func (w *Writer) entries(column int, s *Schema) {
	switch {
	case s.Additional != nil:
		w.Child(column, "additionalProperties", s.Additional)
	case s.AnyAdditional:
		w.Value(column, "additionalProperties", true)
	}
	w.schemas(column, "allOf", s.AllOf)
	w.schemas(column, "anyOf", s.AnyOf)
	w.json(column, "default", s.Default)
	w.text(column, "description", shorten(s.Description, w.maxDescription))
	if len(s.Enum) > 0 {
		w.Open(column, "enum")
		for _, value := range s.Enum {
			w.Item(column, decode(value))
		}
	}
	w.json(column, "example", s.Example)
	w.flag(column, "exclusiveMaximum", s.ExclusiveMaximum)
	w.flag(column, "exclusiveMinimum", s.ExclusiveMinimum)
	if docs := s.ExternalDocs; docs != nil {
		entry := map[string]any{}
		if docs.Description != "" {
			entry["description"] = docs.Description
		}
		if docs.URL != "" {
			entry["url"] = docs.URL
		}
		w.Value(column, "externalDocs", entry)
	}
	w.text(column, "format", s.Format)
	if s.Items != nil {
		w.Child(column, "items", s.Items)
	}
	w.integer(column, "maxItems", s.MaxItems)
	w.integer(column, "maxLength", s.MaxLength)
	w.integer(column, "maxProperties", s.MaxProperties)
	w.number(column, "maximum", s.Maximum)
	w.integer(column, "minItems", s.MinItems)
	w.integer(column, "minLength", s.MinLength)
	w.integer(column, "minProperties", s.MinProperties)
	w.number(column, "minimum", s.Minimum)
	w.number(column, "multipleOf", s.MultipleOf)
	w.flag(column, "nullable", s.Nullable)
	w.text(column, "pattern", s.Pattern)
	if len(s.Properties) > 0 {
		w.Open(column, "properties")
		for _, name := range s.keys {
			w.Child(column+2, name, s.Properties[name])
		}
	}
	w.Strings(column, "required", s.Required)
	w.text(column, "title", s.Title)
	w.text(column, "type", s.Type)
	w.flag(column, "uniqueItems", s.UniqueItems)
	w.flag(column, "x-kubernetes-embedded-resource", s.EmbeddedResource)
	w.flag(column, "x-kubernetes-int-or-string", s.IntOrString)
	w.Strings(column, "x-kubernetes-list-map-keys", s.ListMapKeys)
	w.text(column, "x-kubernetes-list-type", s.ListType)
	w.text(column, "x-kubernetes-map-type", s.MapType)
	w.flag(column, "x-kubernetes-preserve-unknown-fields", s.PreserveUnknown)
	w.validations(column, s.Validations)
}

func (w *Writer) schemas(column int, key string, schemas []*Schema) {
	if len(schemas) == 0 {
		return
	}
	w.Open(column, key)
	for _, s := range schemas {
		w.element(column, s)
	}
}

func (w *Writer) validations(column int, rules []Validation) {
	if len(rules) == 0 {
		return
	}
	w.Open(column, "x-kubernetes-validations")
	for _, rule := range rules {
		start := len(w.Out)
		w.text(column+2, "fieldPath", rule.FieldPath)
		w.text(column+2, "message", rule.Message)
		w.text(column+2, "messageExpression", rule.MessageExpression)
		if rule.OptionalOldSelf != nil {
			w.Value(column+2, "optionalOldSelf", *rule.OptionalOldSelf)
		}
		w.text(column+2, "reason", rule.Reason)
		w.String(column+2, "rule", rule.Rule)
		w.Out[start+column] = '-'
	}
}

func (w *Writer) text(column int, key, text string) {
	if text != "" {
		w.String(column, key, text)
	}
}

func (w *Writer) flag(column int, key string, set bool) {
	if set {
		w.Value(column, key, true)
	}
}

func (w *Writer) integer(column int, key string, n *int64) {
	if n != nil {
		w.Value(column, key, *n)
	}
}

func (w *Writer) number(column int, key string, n *float64) {
	if n != nil {
		w.Value(column, key, *n)
	}
}

// shorten cuts documentation down to a limit: to whole sentences if one ends in
// time, else to whole words. No limit, or a negative one, leaves it as it is.
func shorten(text string, limit *int) string {
	switch {
	case limit == nil || *limit < 0:
		return text
	case *limit == 0:
		return ""
	case len(text) <= *limit:
		return text
	}
	text = text[:*limit]
	if n := strings.LastIndexFunc(text, func(r rune) bool { return unicode.Is(unicode.STerm, r) }); n > 0 {
		return text[:n+1]
	}
	if n := strings.LastIndexFunc(text, func(r rune) bool { return unicode.Is(unicode.White_Space, r) }); n > 0 {
		return text[:n] + "..."
	}
	return text + "..."
}
