// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"

	api "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/util"
)

// Definitions is what references to definitions of OpenAPI v2 begin with.
const Definitions = "#/definitions/"

// DefinitionName is the name of a type in OpenAPI v2 definitions.
func DefinitionName(path, name string) string { return util.ToRESTFriendlyName(path + "." + name) }

// Props converts a flat schema to the API's own type, for what that is needed:
// validation and outputs in its field order. Shared parts come out as copies.
// Descriptions are shortened as by [NewWriter]. It is nil for nil.
func (s *Schema) Props(maxDescription *int) *api.JSONSchemaProps {
	if s == nil {
		return nil
	}
	out := &api.JSONSchemaProps{
		Description: shorten(s.Description, maxDescription), Type: s.Type, Format: s.Format, Title: s.Title, Pattern: s.Pattern,
		Maximum: s.Maximum, Minimum: s.Minimum, MultipleOf: s.MultipleOf,
		ExclusiveMaximum: s.ExclusiveMaximum, ExclusiveMinimum: s.ExclusiveMinimum,
		MaxLength: s.MaxLength, MinLength: s.MinLength, MaxItems: s.MaxItems, MinItems: s.MinItems,
		MaxProperties: s.MaxProperties, MinProperties: s.MinProperties,
		UniqueItems: s.UniqueItems, Nullable: s.Nullable, Required: s.Required,
		XEmbeddedResource: s.EmbeddedResource, XIntOrString: s.IntOrString, XListMapKeys: s.ListMapKeys,
		Default: raw(s.Default), Example: raw(s.Example),
	}
	if s.Ref != nil {
		link := Definitions + DefinitionName(s.Ref.Package.Path, s.Ref.Name)
		out.Ref = &link
	}
	for _, value := range s.Enum {
		out.Enum = append(out.Enum, api.JSON{Raw: value})
	}
	if s.Items != nil {
		out.Items = &api.JSONSchemaPropsOrArray{Schema: s.Items.Props(maxDescription)}
	}
	for _, part := range s.AllOf {
		out.AllOf = append(out.AllOf, *part.Props(maxDescription))
	}
	for _, part := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, *part.Props(maxDescription))
	}
	if len(s.Properties) > 0 {
		out.Properties = make(map[string]api.JSONSchemaProps, len(s.Properties))
		for name, property := range s.Properties {
			out.Properties[name] = *property.Props(maxDescription)
		}
	}
	if s.Additional != nil || s.AnyAdditional {
		out.AdditionalProperties = &api.JSONSchemaPropsOrBool{Allows: true, Schema: s.Additional.Props(maxDescription)}
	}
	if docs := s.ExternalDocs; docs != nil {
		out.ExternalDocs = &api.ExternalDocumentation{URL: docs.URL, Description: docs.Description}
	}
	if s.PreserveUnknown {
		out.XPreserveUnknownFields = &s.PreserveUnknown
	}
	if s.ListType != "" {
		out.XListType = &s.ListType
	}
	if s.MapType != "" {
		out.XMapType = &s.MapType
	}
	for _, rule := range s.Validations {
		v := api.ValidationRule{
			Rule: rule.Rule, Message: rule.Message, MessageExpression: rule.MessageExpression,
			FieldPath: rule.FieldPath, OptionalOldSelf: rule.OptionalOldSelf,
		}
		if rule.Reason != "" {
			reason := api.FieldValueErrorReason(rule.Reason)
			v.Reason = &reason
		}
		out.XValidations = append(out.XValidations, v)
	}
	return out
}

func raw(text []byte) *api.JSON {
	if text == nil {
		return nil
	}
	return &api.JSON{Raw: slices.Clone(text)}
}
