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

// jsonTypes are the types that values have.
func jsonTypes() []string {
	return []string{"array", "boolean", "integer", "number", "object", "string"}
}

// rootFields is what the root of a schema may have beside a status subresource,
// as Kubernetes names it.
const rootFields = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]"

// schemaRules is what holds for a schema because of what is around it.
type schemaRules struct {
	// structural schemas are asked for.
	structural bool
	// status is a subresource.
	status bool
	// costly rules are forgiven one by one; their sum is not.
	costly bool
}

// validation checks a schema and its rules.
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
	// What keeps a schema from being structural has mostly been said in a better way.
	if unfit != nil && len(c.errs) == sound {
		c.invalid(at, "", unfit.Error())
	}
	if typed != nil {
		c.total(&w.costs, at)
	}
}

// rootBesideStatus checks that nothing is said at the root that a check of the
// status alone would miss. Of what is wrong it says the first.
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

// structure checks what structural schemas have to be, and their defaults. It
// returns the scope of rules, if all is well, or what kept it from looking.
func (c *checker) structure(s *apiextensions.JSONSchemaProps, at *field.Path) (*scope, error) {
	ss, err := schema.NewStructural(s)
	if err != nil {
		return nil, err
	}
	errs := schema.ValidateStructural(at, ss)
	if len(errs) == 0 {
		errs, err = defaulting.ValidateDefaults(c.ctx, at, ss, true, !c.forgive.unpruned)
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

// schemaWalk is one way through a schema. What is wrong with rules is said after
// what is wrong with the schema.
type schemaWalk struct {
	*checker
	costly   bool
	ruleErrs field.ErrorList
	costs    costs
}

// position is what the place of a node says about it.
type position struct {
	root bool
	// noDefaults says why there may be no default, or is empty.
	noDefaults string
	// meta: the node is inside apiVersion, kind or metadata of an object.
	meta bool
	// loose is the outermost node above in which the parts of an object before and
	// after an update cannot be told to be the same.
	loose *field.Path
	// scope of rules; nil where none are looked at.
	scope *scope
}

// below is the position of a child, which is no root and has no rules unless it
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

// node checks a schema with all that is in it.
func (w *schemaWalk) node(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	if s == nil {
		return
	}
	before := len(w.errs)
	w.keywords(s, at, p)
	w.children(s, at, p)
	w.extensions(s, at)
	w.ruleTexts(s, at)
	// Rules over a schema that is wrong give errors that nobody can act upon.
	if len(s.XValidations) > 0 && len(w.errs) == before && p.scope != nil {
		w.rules(s, at, p)
	}
}

// keywords checks those that this dialect of JSON schema does not have.
func (w *schemaWalk) keywords(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	if s.Type != "" && !w.forgive.types {
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

// children checks the schemas in a schema.
func (w *schemaWalk) children(s *apiextensions.JSONSchemaProps, at *field.Path, p position) {
	below := p.below()
	if more := s.AdditionalProperties; more != nil {
		if len(s.Properties) > 0 && (!more.Allows || more.Schema != nil) {
			w.forbidden(at.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive")
		}
		child := below
		if p.meta {
			// Without a value nobody could tell what of a default is pruned.
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

// items checks the schemas of a list's elements. Only those of a map have an
// identity that an update keeps.
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

// isMeta tells the properties that every object has.
func isMeta(name string) bool { return name == "metadata" || name == "kind" || name == "apiVersion" }
