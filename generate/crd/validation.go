// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/generate/schema"
)

// bound is a number that may be followed by a comment in markers of the k8s:
// family.
type bound float64

func (b *bound) ParseMarker(name, text string) error {
	value, err := strconv.ParseFloat(uncomment(name, text), 64)
	*b = bound(value)
	return err
}

// count is an integer that may be followed by a comment in markers of the k8s:
// family.
type count int

func (n *count) ParseMarker(name, text string) error {
	value, err := strconv.Atoi(uncomment(name, text))
	*n = count(value)
	return err
}

func uncomment(name, text string) string {
	if strings.HasPrefix(name, "k8s:") {
		text, _, _ = strings.Cut(text, "#")
	}
	return strings.TrimSpace(text)
}

// xValidation is the argument list of a CEL rule.
type xValidation struct {
	Rule              string `help:"The CEL expression that must be true. self is the value that carries the marker, oldSelf what it was before an update."`
	Message           string `marker:",optional" help:"What the user reads when the rule fails. One line."`
	MessageExpression string `marker:",optional" help:"A CEL expression that makes the message; wins over message."`
	Reason            string `marker:",optional" help:"FieldValueInvalid (default), FieldValueForbidden, FieldValueRequired or FieldValueDuplicate."`
	FieldPath         string `marker:",optional" help:"The path of the field to blame, relative to the value, for example .spec.replicas."`
	OptionalOldSelf   *bool  `help:"Evaluate the rule on creation too; oldSelf is then an optional value."`
}

func validationRules() []rule {
	return slices.Concat(
		everywhere("Maximum", "The largest number allowed.", normal, func(s *schema.Schema, v bound) error {
			value, err := numeric(s, float64(v))
			s.Maximum = value
			return err
		}),
		everywhere("Minimum", "The smallest number allowed.", normal, func(s *schema.Schema, v bound) error {
			value, err := numeric(s, float64(v))
			s.Minimum = value
			return err
		}),
		everywhere("MultipleOf", "The number must be a multiple of this one.", normal, func(s *schema.Schema, v float64) error {
			value, err := numeric(s, v)
			s.MultipleOf = value
			return err
		}),
		everywhere("ExclusiveMaximum", "The maximum itself is not allowed.", normal, func(s *schema.Schema, v bool) error {
			s.ExclusiveMaximum = v
			return need(isNumber(s), "a number", s)
		}),
		everywhere("ExclusiveMinimum", "The minimum itself is not allowed.", normal, func(s *schema.Schema, v bool) error {
			s.ExclusiveMinimum = v
			return need(isNumber(s), "a number", s)
		}),
		everywhere("MaxLength", "The most characters allowed.", normal, func(s *schema.Schema, v int) error {
			s.MaxLength = integer(v)
			return need(isText(s), "a string", s)
		}),
		everywhere("MinLength", "The fewest characters allowed.", normal, func(s *schema.Schema, v int) error {
			s.MinLength = integer(v)
			return need(isText(s), "a string", s)
		}),
		everywhere("Pattern", "The regular expression that the text must match.", normal, func(s *schema.Schema, v string) error {
			s.Pattern = v
			return need(isText(s), "a string", s)
		}),
		everywhere("MaxItems", "The most items allowed.", normal, maxItems),
		everywhere("MinItems", "The fewest items allowed.", normal, func(s *schema.Schema, v int) error {
			s.MinItems = integer(v)
			return need(s.Type == "array", "an array", s)
		}),
		everywhere("UniqueItems", "No two items may be equal. The API server refuses it; use listType=set.", normal, func(s *schema.Schema, v bool) error {
			s.UniqueItems = v
			return need(s.Type == "array", "an array", s)
		}),
		everywhere("MaxProperties", "The most keys allowed.", normal, func(s *schema.Schema, v int) error {
			s.MaxProperties = integer(v)
			return need(s.Type == "object", "an object", s)
		}),
		everywhere("MinProperties", "The fewest keys allowed.", normal, func(s *schema.Schema, v int) error {
			s.MinProperties = integer(v)
			return need(s.Type == "object", "an object", s)
		}),
		everywhere("Enum", "The values allowed.", normal, func(s *schema.Schema, values []any) error {
			s.Enum = make([][]byte, len(values))
			for i, value := range values {
				text, err := json.Marshal(value)
				if err != nil {
					return err
				}
				s.Enum[i] = text
			}
			return nil
		}),
		everywhere("Format", "The format of the text or number, for example date-time.", normal, func(s *schema.Schema, v string) error {
			s.Format = v
			return nil
		}),
		everywhere("Type", "The type of the value, where its Go type does not tell: the value marshals itself.", first, func(s *schema.Schema, v string) error {
			s.Type = v
			return nil
		}),
		everywhere("XPreserveUnknownFields", "Keep fields that the schema does not have. Prefer kubebuilder:pruning:PreserveUnknownFields.", normal, preserveUnknown),
		everywhere("XEmbeddedResource", "The value is a Kubernetes object with apiVersion, kind and metadata.", normal, embeddedResource),
		everywhere("XIntOrString", "The value is an integer or a string.", first, func(s *schema.Schema, _ struct{}) error {
			s.IntOrString = true
			return nil
		}),
		everywhere("XValidation", "A CEL rule that must hold. Repeatable.", normal, addValidation),
	)
}

func preserveUnknown(s *schema.Schema, _ struct{}) error {
	s.PreserveUnknown = true
	return nil
}

func embeddedResource(s *schema.Schema, _ struct{}) error {
	s.EmbeddedResource = true
	return nil
}

func maxItems(s *schema.Schema, v count) error {
	s.MaxItems = integer(int(v))
	return need(s.Type == "array", "an array", s)
}

func addValidation(s *schema.Schema, v xValidation) error {
	switch v.Reason {
	case "", "FieldValueRequired", "FieldValueInvalid", "FieldValueForbidden", "FieldValueDuplicate":
	default:
		return fmt.Errorf("invalid reason %s: use FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate", v.Reason)
	}
	s.Validations = append(slices.Clone(s.Validations), schema.Validation(v))
	return nil
}

func isNumber(s *schema.Schema) bool { return s.Type == "integer" || s.Type == "number" }

func isText(s *schema.Schema) bool { return s.Type == "string" || s.IntOrString }

// numeric checks a number that limits another.
func numeric(s *schema.Schema, v float64) (*float64, error) {
	if !isNumber(s) {
		return nil, need(false, "a number", s)
	}
	if s.Type == "integer" && (v != math.Trunc(v) || math.IsInf(v, 0)) {
		return nil, fmt.Errorf("an integer cannot be limited by %v", v)
	}
	return &v, nil
}

func integer(v int) *int64 {
	n := int64(v)
	return &n
}

var errOneOfPath = errors.New("a one-of rule cannot name fields of fields")

// oneOf lists the JSON names of fields.
type oneOf []string

func (fields oneOf) has(join, before, after string) string {
	terms := make([]string, len(fields))
	for i, field := range fields {
		terms[i] = before + "has(self." + field + ")" + after
	}
	return strings.Join(terms, join)
}
