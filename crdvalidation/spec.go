// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// spec validates the spec of a definition.
func (c *checker) spec(spec *apiextensions.CustomResourceDefinitionSpec) {
	at := field.NewPath("spec")
	c.group(spec.Group, at.Child("group"))
	c.oneOf(at.Child("scope"), string(spec.Scope), string(apiextensions.ClusterScoped), string(apiextensions.NamespaceScoped))
	c.missingSchemas(spec, at.Child("versions"))

	f := featuresOf(spec)
	if f.defaults && preserves(spec) {
		c.invalid(at.Child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema")
	}
	mustBeStructural := !c.ratchet.unstructured || !preserves(spec) || f.defaults || f.extensions
	c.versions(spec, mustBeStructural, at)

	for _, n := range []struct{ field, value string }{
		{"plural", spec.Names.Plural}, {"singular", spec.Names.Singular}, {"kind", spec.Names.Kind}, {"listKind", spec.Names.ListKind},
	} {
		if n.value == "" {
			c.required(at.Child("names", n.field), "")
		}
	}
	c.names(&spec.Names, at.Child("names"))
	c.common(spec, mustBeStructural, at)
	if spec.Conversion != nil && spec.Conversion.Strategy != apiextensions.NoneConverter && preserves(spec) {
		c.invalid(at.Child("conversion", "strategy"), spec.Conversion.Strategy, "must be None if spec.preserveUnknownFields is true")
	}
	c.conversion(spec.Conversion, at.Child("conversion"))
}

// features are features of schemas that require structural ones.
type features struct{ defaults, extensions bool }

func featuresOf(spec *apiextensions.CustomResourceDefinitionSpec) features {
	var f features
	for root := range schemas(spec) {
		walk(root, func(s *apiextensions.JSONSchemaProps) {
			f.defaults = f.defaults || s.Default != nil
			f.extensions = f.extensions || s.XEmbeddedResource || s.XPreserveUnknownFields != nil || s.XIntOrString ||
				len(s.XListMapKeys) > 0 || s.XListType != nil || len(s.XValidations) > 0
		})
	}
	return f
}

func (c *checker) group(group string, at *field.Path) {
	if group == "" {
		c.required(at, "")
	} else if errs := utilvalidation.IsDNS1123Subdomain(group); len(errs) > 0 {
		c.invalid(at, group, strings.Join(errs, ","))
	} else if !strings.Contains(group, ".") {
		c.invalid(at, group, "should be a domain with at least one dot")
	}
}

// missingSchemas requires a schema per version, or, if some were missing before, for
// versions that would prune everything without one.
func (c *checker) missingSchemas(spec *apiextensions.CustomResourceDefinitionSpec, at *field.Path) {
	if hasSchema(spec.Validation) || c.ratchet.missing && preserves(spec) {
		return
	}
	for i := range spec.Versions {
		v, where := &spec.Versions[i], at.Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case hasSchema(v.Schema):
		case !c.ratchet.missing:
			c.required(where, "")
		case v.Served:
			c.required(where, "because otherwise all fields are pruned")
		}
	}
}

// versions validates the fields of each version, and the list of them.
func (c *checker) versions(spec *apiextensions.CustomResourceDefinitionSpec, mustBeStructural bool, at *field.Path) {
	list := at.Child("versions")
	seen := map[string]bool{}
	stored, twice := 0, false
	for i := range spec.Versions {
		v := &spec.Versions[i]
		if v.Storage {
			stored++
		}
		twice = twice || seen[v.Name]
		seen[v.Name] = true
		c.label(list.Index(i).Child("name"), v.Name)
		c.version(v, schemaRules{structural: mustBeStructural, status: hasStatus(subresourcesOf(spec, v.Name))}, list.Index(i))
	}
	if twice {
		c.invalid(list, spec.Versions, "must contain unique version names")
	}
	if stored != 1 {
		c.invalid(list, spec.Versions, "must have exactly one version marked as storage version")
	}
	if spec.Version != "" {
		c.label(at.Child("version"), spec.Version)
	}
}

func (c *checker) version(v *apiextensions.CustomResourceDefinitionVersion, rules schemaRules, at *field.Path) {
	for _, problem := range deprecationProblems(v) {
		c.invalid(at.Child("deprecationWarning"), v.DeprecationWarning, problem)
	}
	rules.costly = c.ratchet.unchanged.Has(v.Name)
	c.validation(v.Schema, rules, at.Child("schema"))
	c.subresources(v.Subresources, at.Child("subresources"))
	c.columns(v.AdditionalPrinterColumns, at)
	if len(v.SelectableFields) == 0 {
		return
	}
	if !hasSchema(v.Schema) {
		c.invalid(at.Child("selectableFields"), "", "may only be set when `version.schema.openAPIV3Schema` is not included")
		return
	}
	c.selectable(v.SelectableFields, v.Schema, v.Name, at)
}

// common validates the fields that all versions have in common.
func (c *checker) common(spec *apiextensions.CustomResourceDefinitionSpec, mustBeStructural bool, at *field.Path) {
	status := hasStatus(spec.Subresources) || slices.ContainsFunc(spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool {
		return hasStatus(v.Subresources)
	})
	c.validation(spec.Validation, schemaRules{
		structural: mustBeStructural, status: status, costly: c.ratchet.unchanged.Has(spec.Version),
	}, at.Child("validation"))
	c.subresources(spec.Subresources, at.Child("subresources"))
	c.columns(spec.AdditionalPrinterColumns, at)
	if len(spec.SelectableFields) == 0 {
		return
	}
	if spec.Validation == nil {
		c.invalid(at.Child("selectableFields"), "", "may only be set when validations.schema is included")
		return
	}
	c.selectable(spec.SelectableFields, spec.Validation, "", at)
}

// subresourcesOf returns the subresources of a version.
func subresourcesOf(spec *apiextensions.CustomResourceDefinitionSpec, version string) *apiextensions.CustomResourceSubresources {
	if !apiextensions.HasPerVersionSubresources(spec.Versions) {
		return spec.Subresources
	}
	for i := range spec.Versions {
		if spec.Versions[i].Name == version {
			return spec.Versions[i].Subresources
		}
	}
	return nil
}

func hasStatus(s *apiextensions.CustomResourceSubresources) bool { return s != nil && s.Status != nil }

// deprecationProblems validates the deprecation warning of a version.
func deprecationProblems(v *apiextensions.CustomResourceDefinitionVersion) (problems []string) {
	const longest = 256 // bytes
	if v.DeprecationWarning == nil {
		return nil
	}
	if !v.Deprecated {
		return []string{"can only be set for deprecated versions"}
	}
	text := *v.DeprecationWarning
	if len(text) > longest {
		problems = append(problems, fmt.Sprintf("must be <= %d characters long", longest))
	}
	if text == "" {
		problems = append(problems, "must not be an empty string")
	}
	// Control characters are not printable.
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		problems = append(problems, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
	}
	if !utf8.ValidString(text) {
		problems = append(problems, "must only contain printable UTF-8 characters")
	}
	return problems
}

// immutable validates the fields that an update cannot change.
func (c *checker) immutable(spec *apiextensions.CustomResourceDefinitionSpec) {
	old := c.ratchet.old
	if old == nil {
		return
	}
	at := field.NewPath("spec")
	same := func(now, before any, at *field.Path) {
		c.errs = append(c.errs, validation.ValidateImmutableField(now, before, at)...)
	}
	if c.ratchet.established {
		same(spec.Scope, old.Scope, at.Child("scope"))
		same(spec.Names.Kind, old.Names.Kind, at.Child("names", "kind"))
	}
	same(spec.Group, old.Group, at.Child("group"))
	same(spec.Names.Plural, old.Names.Plural, at.Child("names", "plural"))
}
