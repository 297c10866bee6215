// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/custom/internal/fast"
)

// Schemas remembers compiled schemas by their content, so that control planes
// which serve the same definitions compile them once. It keeps at most a fixed
// number of them and drops the oldest. It is safe for concurrent use.
type Schemas struct {
	mu      sync.Mutex
	schemas map[digest]*Schema
	order   []digest
	types   map[digest]*apply.Types
	valid   map[digest]struct{}
}

type digest [sha256.Size]byte

// keptSchemas bounds a Schemas: enough for the definitions of several large
// projects at once.
const keptSchemas = 1024

// NewSchemas returns an empty set of schemas.
func NewSchemas() *Schemas {
	return &Schemas{schemas: map[digest]*Schema{}, types: map[digest]*apply.Types{}, valid: map[digest]struct{}{}}
}

// Schema is the schema of one version of a custom resource. What is derived
// from it is derived on first use. It is immutable and safe for concurrent use.
type Schema struct {
	id         digest
	props      *apiextensions.JSONSchemaProps // nil without a schema
	structural func() (*schema.Structural, error)
	rules      func() *cel.Validator
	openapi    func() *spec.Schema
	validators func() (*validators, error)
	features   func() features
	defaulted  func() *fast.Defaulted
}

// features tells which parts of a schema some objects have to be walked for.
type features struct{ embeds, defaults, lists bool }

// validators check values against the schema.
type validators struct {
	object validation.SchemaValidator
	// fastObject and fastStatus spare most objects the validators above.
	fastObject, fastStatus *fast.Schema
	// status checks the value of the status field; nil when it has no schema.
	status validation.SchemaValidator
}

// Of returns the schema of a version of a definition.
func (s *Schemas) Of(version *v1.CustomResourceDefinitionVersion) (*Schema, error) {
	encoded, err := json.Marshal(version.Schema)
	if err != nil {
		return nil, fmt.Errorf("custom: encode the schema of version %s: %w", version.Name, err)
	}
	id := digest(sha256.Sum256(encoded))
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.schemas[id]; known != nil {
		return known, nil
	}
	compiled, err := newSchema(version.Schema)
	if err != nil {
		return nil, fmt.Errorf("custom: schema of version %s: %w", version.Name, err)
	}
	compiled.id = id
	if len(s.order) == keptSchemas {
		delete(s.schemas, s.order[0])
		s.order = s.order[1:]
	}
	s.schemas[id] = compiled
	s.order = append(s.order, id)
	return compiled, nil
}

// Once runs check unless something with the same content has passed it before.
// Only successes are remembered.
func (s *Schemas) Once(content any, check func() bool) {
	encoded, err := json.Marshal(content)
	if err != nil {
		check()
		return
	}
	id := digest(sha256.Sum256(encoded))
	s.mu.Lock()
	_, known := s.valid[id]
	s.mu.Unlock()
	if known || !check() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.valid) >= keptSchemas {
		clear(s.valid)
	}
	s.valid[id] = struct{}{}
}

func newSchema(in *v1.CustomResourceValidation) (*Schema, error) {
	s := &Schema{}
	if in != nil && in.OpenAPIV3Schema != nil {
		var internal apiextensions.CustomResourceValidation
		if err := v1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(in, &internal, nil); err != nil {
			return nil, err
		}
		s.props = internal.OpenAPIV3Schema
	}
	s.structural = sync.OnceValues(s.buildStructural)
	s.openapi = sync.OnceValue(s.buildOpenAPI)
	s.rules = sync.OnceValue(s.buildRules)
	s.validators = sync.OnceValues(s.buildValidators)
	s.features = sync.OnceValue(s.findFeatures)
	s.defaulted = sync.OnceValue(s.buildDefaulted)
	return s, nil
}

// Structural returns the structural form with pruned defaults, nil without a
// schema. It is shared and must not be changed.
func (s *Schema) Structural() (*schema.Structural, error) { return s.structural() }

func (s *Schema) buildStructural() (*schema.Structural, error) {
	if s.props == nil {
		return nil, nil
	}
	structural, err := schema.NewStructural(s.props)
	if err != nil {
		return nil, err
	}
	// The structural form shares its defaults with what it was made from.
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	return structural, nil
}

// findFeatures walks the schema once, so that objects need not be walked for
// what it does not have.
func (s *Schema) findFeatures() features {
	var found features
	structural, err := s.structural()
	if err != nil || structural == nil {
		return found
	}
	visitor := schema.Visitor{Structural: func(node *schema.Structural) bool {
		found.embeds = found.embeds || node.XEmbeddedResource
		found.defaults = found.defaults || node.Default.Object != nil
		found.lists = found.lists || node.XListType != nil
		return false
	}}
	visitor.Visit(structural.DeepCopy())
	return found
}

func (s *Schema) buildDefaulted() *fast.Defaulted {
	structural, err := s.structural()
	if err != nil {
		return nil
	}
	return fast.NewDefaulted(structural, true)
}

// OpenAPI returns the schema as OpenAPI v3 has it, nil without one. It is
// shared and must not be changed.
func (s *Schema) OpenAPI() *spec.Schema { return s.openapi() }

func (s *Schema) buildOpenAPI() *spec.Schema {
	structural, err := s.structural()
	if err != nil || structural == nil {
		return nil
	}
	return structural.ToKubeOpenAPI()
}

func (s *Schema) buildRules() *cel.Validator {
	structural, err := s.structural()
	if err != nil || structural == nil {
		return nil
	}
	return cel.NewValidator(structural, true, celconfig.PerCallLimit)
}

func (s *Schema) buildValidators() (*validators, error) {
	object, objectSchema, err := validation.NewSchemaValidator(s.props)
	if err != nil {
		return nil, err
	}
	v := &validators{object: object, fastObject: fast.New(objectSchema)}
	if s.props != nil {
		if status, ok := s.props.Properties["status"]; ok {
			var statusSchema *spec.Schema
			if v.status, statusSchema, err = validation.NewSchemaValidator(&status); err != nil {
				return nil, err
			}
			v.fastStatus = fast.New(statusSchema)
		}
	}
	return v, nil
}
