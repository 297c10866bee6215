// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// jsonTypes are the valid types.
func jsonTypes() []string {
	return []string{"array", "boolean", "integer", "number", "object", "string"}
}

// rootFields are the fields that the root of a schema with a status subresource may
// have, as kube-apiserver lists them.
const rootFields = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]"

// schemaRules are the rules that apply to a schema because of its context.
type schemaRules struct {
	// structural schemas are required.
	structural bool
	// status subresource is enabled.
	status bool
	// costly: rules may exceed the limit one by one, but not in total.
	costly bool
}

// validation validates a schema and its rules.
func (c *checker) validation(v *apiextensions.CustomResourceValidation, rules schemaRules, in *field.Path) {
	if !hasSchema(v) {
		return
	}
	s, at := v.OpenAPIV3Schema, in.Child("openAPIV3Schema")
	sound := len(c.errs)
	if rules.status {
		c.rootBesideStatus(s, in)
	}
	if s.Nullable {
		c.forbidden(in.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root")
	}
	var typed *scope
	var unfit error
	if rules.structural {
		typed, unfit = c.structure(s, at)
	}
	w := schemaWalk{checker: c, costly: rules.costly}
	w.node(s, at, position{root: true, scope: typed})
	c.errs = append(c.errs, w.ruleErrs...)
	// The errors above mostly describe better why a schema is not structural.
	if unfit != nil && len(c.errs) == sound {
		c.invalid(at, "", unfit.Error())
	}
	if typed != nil {
		c.total(&w.costs, at)
	}
}

// rootBesideStatus refuses keywords at the root that a validation of the status alone
// would miss. It reports the first.
func (c *checker) rootBesideStatus(s *apiextensions.JSONSchemaProps, in *field.Path) {
	rest := *s
	rest.Description, rest.Type, rest.Format, rest.Title = "", "", "", ""
	rest.Maximum, rest.ExclusiveMaximum, rest.Minimum, rest.ExclusiveMinimum = nil, false, nil, false
	rest.MaxLength, rest.MinLength, rest.Pattern = nil, nil, ""
	rest.MaxItems, rest.MinItems, rest.UniqueItems, rest.MultipleOf = nil, nil, false, nil
	rest.Required, rest.Items, rest.Properties = nil, nil, nil
	rest.ExternalDocs, rest.Example, rest.XPreserveUnknownFields, rest.XValidations = nil, nil, nil, nil

	isReference := s.ID != "" || s.Schema != "" || s.Ref != nil
	if s.Type != "" && s.Type != "object" && !isReference {
		c.invalid(in.Child("openAPIV3Schema.type"), s.Type, `only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)
		return
	}
	if !reflect.ValueOf(rest).IsZero() {
		c.invalid(in.Child("openAPIV3Schema"), *s, "only "+rootFields+" fields are allowed at the root of the schema if the status subresource is enabled")
	}
}

// structure validates structural schemas and their defaults. It returns the scope of
// rules if the schema is valid, or the error that prevented the validation.
func (c *checker) structure(s *apiextensions.JSONSchemaProps, at *field.Path) (*scope, error) {
	ss, err := schema.NewStructural(s)
	if err != nil {
		return nil, err
	}
	errs := schema.ValidateStructural(at, ss)
	if len(errs) == 0 {
		errs, err = defaulting.ValidateDefaults(c.ctx, at, ss, true, !c.ratchet.unpruned)
		if err != nil {
			c.invalid(at, "", err.Error())
			return nil, nil
		}
	}
	c.errs = append(c.errs, errs...)
	if len(errs) > 0 {
		return nil, nil
	}
	return rootScope(s), nil
}

// schemaWalk is one traversal of a schema. Errors of rules follow those of the schema.
type schemaWalk struct {
	*checker
	costly   bool
	ruleErrs field.ErrorList
	costs    costs
}

// position is the context of a node.
type position struct {
	root bool
	// noDefaults is the reason why defaults are not allowed, or empty.
	noDefaults string
	// meta: the node is inside apiVersion, kind or metadata of an object.
	meta bool
	// loose is the outermost ancestor whose values before and after an update cannot be
	// correlated.
	loose *field.Path
	// scope of rules; nil where rules are not validated.
	scope *scope
}

// below returns the position of a child, which is no root and has no rules unless it
// gets a scope.
func (p position) below() position {
	p.root, p.scope = false, nil
	return p
}

func (p position) looseIn(at *field.Path) position {
	if p.loose == nil {
		p.loose = at
	}
	return p
}

// node validates a schema and all schemas in it.
func (w *schemaWalk) node(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	if s == nil {
		return
	}
	before := len(w.errs)
	w.keywords(s, at, p)
	w.children(s, at, p)
	w.extensions(s, at)
	w.ruleTexts(s, at)
	// Rules of an invalid schema would give misleading errors.
	if len(s.XValidations) > 0 && len(w.errs) == before && p.scope != nil {
		w.rules(s, at, p)
	}
}

// keywords validates those that structural schemas do not have.
func (w *schemaWalk) keywords(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	if s.Type != "" && !w.ratchet.types {
		supported(w.checker, at.Child("type"), s.Type, jsonTypes()...)
	}
	if s.Default != nil && p.noDefaults != "" {
		w.forbidden(at.Child("default"), "must not be set "+p.noDefaults)
	}
	for _, k := range []struct {
		name string
		used bool
	}{
		{"id", s.ID != ""}, {"additionalItems", s.AdditionalItems != nil}, {"patternProperties", len(s.PatternProperties) > 0},
		{"definitions", len(s.Definitions) > 0}, {"dependencies", s.Dependencies != nil}, {"$ref", s.Ref != nil},
	} {
		if k.used {
			w.forbidden(at.Child(k.name), k.name+" is not supported")
		}
	}
	if s.Type == "null" {
		w.forbidden(at.Child("type"), "type cannot be set to null, use nullable as an alternative")
	}
	if s.Items != nil && len(s.Items.JSONSchemas) > 0 {
		w.forbidden(at.Child("items"), "items must be a schema object and not an array")
	}
	if p.meta && s.XEmbeddedResource {
		w.forbidden(at.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta")
	}
	if s.UniqueItems {
		w.forbidden(at.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
	}
}

// children validates the schemas in a schema.
func (w *schemaWalk) children(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	below := p.below()
	if more := s.AdditionalProperties; more != nil {
		if len(s.Properties) > 0 && (!more.Allows || more.Schema != nil) {
			w.forbidden(at.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive")
		}
		child := below
		if p.meta {
			// The values of unknown properties have no schema to prune a default by.
			child.noDefaults = "inside additionalProperties applying to object metadata"
		}
		child.scope = p.scope.values(more.Schema)
		w.node(more.Schema, at.Child("additionalProperties"), child)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property, child := s.Properties[name], below
		if !cel.MapIsCorrelatable(s.XMapType) {
			child = child.looseIn(at)
		}
		if (p.root || s.XEmbeddedResource) && isMeta(name) {
			child.meta = true
			if p.root {
				child.noDefaults = fmt.Sprintf("in top-level %s", name)
			}
		}
		child.scope = p.scope.property(&property, name)
		w.node(&property, at.Child("properties").Key(name), child)
	}
	w.node(s.Not, at.Child("not"), below)
	for _, list := range []struct {
		name    string
		schemas []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}} {
		for i := range list.schemas {
			w.node(&list.schemas[i], at.Child(list.name).Index(i), below)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Definitions)) {
		d := s.Definitions[name]
		w.node(&d, at.Child("definitions").Key(name), below)
	}
	if s.Items != nil {
		w.items(s, at, p)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		w.node(s.Dependencies[name].Schema, at.Child("dependencies").Key(name), below)
	}
}

// items validates the schemas of a list's elements. Only those of a map can be
// correlated on updates.
func (w *schemaWalk) items(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	child := p.below()
	if !isList(s, "map") {
		child = child.looseIn(at)
	}
	child.scope = p.scope.items(s.Items.Schema)
	w.node(s.Items.Schema, at.Child("items"), child)
	for i := range s.Items.JSONSchemas {
		child.scope = p.scope.items(&s.Items.JSONSchemas[i])
		w.node(&s.Items.JSONSchemas[i], at.Child("items").Index(i), child)
	}
}

// isMeta reports whether every object has a property.
func isMeta(name string) bool { return name == "metadata" || name == "kind" || name == "apiVersion" }
