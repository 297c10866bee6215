// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"errors"
	"math"
	"math/bits"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// scope is the context of rules at a node of a schema: the types of the values, and how
// many of them an object can have. A nil scope has no rules.
type scope struct {
	node *apiextensions.JSONSchemaProps // nil where the schema is a boolean
	in   *scope
	// ruled is set if there are rules here or above, so that types are needed.
	ruled bool
	// part returns the types of this node from those of its parent.
	part func(*typing) *typing
	// the maximum number of values, if bounded
	count   uint64
	bounded bool

	typed *typing
	err   error
}

// typing has the CEL types of a node.
type typing struct {
	schema *schema.Structural
	decl   *apiservercel.DeclType
}

func rootScope(s *apiextensions.JSONSchemaProps) *scope {
	return &scope{node: s, ruled: len(s.XValidations) > 0, count: 1, bounded: true}
}

// property returns the scope of a property.
func (s *scope) property(node *apiextensions.JSONSchemaProps, name string) *scope {
	return s.child(node, func(t *typing) *typing {
		escaped, ok := apiservercel.Escape(name)
		if !ok {
			return nil // rules cannot name it
		}
		decl, ok := t.decl.Fields[escaped]
		if !ok {
			return nil
		}
		property := t.schema.Properties[name]
		return &typing{&property, decl.Type}
	})
}

// items returns the scope of elements.
func (s *scope) items(node *apiextensions.JSONSchemaProps) *scope {
	return s.child(node, func(t *typing) *typing {
		if t.schema.Items == nil {
			return nil
		}
		return &typing{t.schema.Items, t.decl.ElemType}
	})
}

// values returns the scope of additional properties.
func (s *scope) values(node *apiextensions.JSONSchemaProps) *scope {
	return s.child(node, func(t *typing) *typing {
		if t.schema.AdditionalProperties == nil {
			return nil
		}
		return &typing{t.schema.AdditionalProperties.Structural, t.decl.ElemType}
	})
}

func (s *scope) child(node *apiextensions.JSONSchemaProps, part func(*typing) *typing) *scope {
	if s == nil || node == nil {
		return nil
	}
	c := &scope{node: node, in: s, part: part, ruled: s.ruled || len(node.XValidations) > 0}
	if most, ok := children(s.node); ok && s.bounded {
		c.count, c.bounded = multiply(s.count, most), true
	}
	return c
}

// types returns the types of a node with rules at or below it. They are computed for
// the whole subtree, so those of the parent are reused if known.
func (s *scope) types() (*typing, error) {
	if s.typed != nil || s.err != nil {
		return s.typed, s.err
	}
	if s.in != nil && s.in.ruled {
		above, err := s.in.types()
		if err != nil {
			s.err = err
			return nil, err
		}
		if s.typed = s.part(above); s.typed != nil {
			return s.typed, nil
		}
	}
	s.typed, s.err = typingOf(s.node, s.in == nil || s.node.XEmbeddedResource)
	return s.typed, s.err
}

func typingOf(node *apiextensions.JSONSchemaProps, isObject bool) (*typing, error) {
	ss, err := schema.NewStructural(node)
	if err != nil {
		return nil, err
	}
	decl := model.SchemaDeclType(ss, isObject)
	if decl == nil {
		return nil, errors.New("unable to convert structural schema to CEL declarations")
	}
	return &typing{ss, decl}, nil
}

// times returns the cost of a rule for the whole object. If nothing bounds how often it
// runs, the size limit of a request does.
func (s *scope) times(r *cel.CompilationResult) uint64 {
	if s.bounded {
		return multiply(r.MaxCost, s.count)
	}
	return multiply(r.MaxCost, r.MaxCardinality)
}

// children returns how many values the children of a schema have per value of it.
func children(s *apiextensions.JSONSchemaProps) (most uint64, bounded bool) {
	var limit *int64
	switch {
	case s.Type == "array":
		limit = s.MaxItems
	case s.Type == "object" && s.AdditionalProperties != nil:
		limit = s.MaxProperties
	default:
		return 1, true
	}
	if limit == nil {
		return 0, false
	}
	return uint64(max(*limit, 0)), true
}

// multiply saturates.
func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}
