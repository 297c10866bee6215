// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func isList(s *apiextensions.JSONSchemaProps, kind string) bool {
	return s.XListType != nil && *s.XListType == kind
}

// extensions validates the keywords that Kubernetes adds to JSON schema, except rules.
func (w *schemaWalk) extensions(s *apiextensions.JSONSchemaProps, at *field.Path) {
	if keep := s.XPreserveUnknownFields; keep != nil && !*keep {
		w.invalid(at.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined")
	}
	if s.XMapType != nil {
		if s.Type != "object" {
			w.wrongType(s, at, "must be object if x-kubernetes-map-type is specified")
		}
		supported(w.checker, at.Child("x-kubernetes-map-type"), *s.XMapType, "atomic", "granular")
	}
	if s.XListType != nil {
		if s.Type != "array" {
			w.wrongType(s, at, "must be array if x-kubernetes-list-type is specified")
		} else if keyword := granularItem(s); keyword != "" && !w.ratchet.granular {
			// The value in the error is that of the list type, also if the map type is
			// wrong.
			w.invalid(at.Child("items", keyword), s.Items.Schema.XListType, "must be atomic as item of a list with x-kubernetes-list-type=set")
		}
		supported(w.checker, at.Child("x-kubernetes-list-type"), *s.XListType, "atomic", "set", "map")
	}
	w.listMap(s, at)
	if !w.ratchet.keys {
		w.errs = append(w.errs, looseKeys(s, at)...)
	}
}

// wrongType adds the error for a type that is missing or not the required one.
func (w *schemaWalk) wrongType(s *apiextensions.JSONSchemaProps, at *field.Path, detail string) {
	if s.Type == "" {
		w.required(at.Child("type"), detail)
		return
	}
	w.invalid(at.Child("type"), s.Type, detail)
}

// granularItem returns the keyword that makes the elements of a set mergeable, or "" if
// they are atomic.
func granularItem(s *apiextensions.JSONSchemaProps) string {
	if !isList(s, "set") || s.Items == nil || s.Items.Schema == nil {
		return ""
	}
	switch item := s.Items.Schema; {
	case item.Type == "array" && item.XListType != nil && *item.XListType != "atomic": // the default
		return "x-kubernetes-list-type"
	case item.Type == "object" && (item.XMapType == nil || *item.XMapType != "atomic"):
		return "x-kubernetes-map-type"
	}
	return ""
}

// listMap validates lists whose elements are identified by keys.
func (w *schemaWalk) listMap(s *apiextensions.JSONSchemaProps, at *field.Path) {
	listType, listKeys := at.Child("x-kubernetes-list-type"), at.Child("x-kubernetes-list-map-keys")
	if !isList(s, "map") {
		const must = "must be map if x-kubernetes-list-map-keys is non-empty"
		switch {
		case len(s.XListMapKeys) == 0:
		case s.XListType == nil:
			w.required(listType, must)
		default:
			w.invalid(listType, *s.XListType, must)
		}
		return
	}
	if len(s.XListMapKeys) == 0 {
		w.required(listKeys, "must not be empty if x-kubernetes-list-type is map")
	}
	switch {
	case s.Items == nil:
		w.required(at.Child("items"), "must have a schema if x-kubernetes-list-type is map")
	case s.Items.Schema == nil:
		w.invalid(at.Child("items"), s.Items, "must only have a single schema if x-kubernetes-list-type is map")
	case s.Items.Schema.Type != "object":
		w.invalid(at.Child("items", "type"), s.Items.Schema.Type, "must be object if parent array's x-kubernetes-list-type is map")
	default:
		for i, key := range s.XListMapKeys {
			if property, ok := s.Items.Schema.Properties[key]; !ok {
				w.invalid(listKeys, s.XListMapKeys, "entries must all be names of item properties")
			} else if property.Type == "array" || property.Type == "object" {
				w.invalid(at.Child("items", "properties").Key(key).Child("type"), s.Items.Schema.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map")
			}
			if slices.Contains(s.XListMapKeys[:i], key) {
				w.invalid(listKeys, s.XListMapKeys, "must not contain duplicate entries")
			}
		}
	}
}

// looseKeys returns errors where elements of sets and maps may lack their keys.
func looseKeys(s *apiextensions.JSONSchemaProps, at *field.Path) (errs field.ErrorList) {
	if !isList(s, "set") && !isList(s, "map") || s.Items == nil || s.Items.Schema == nil {
		return nil
	}
	item := s.Items.Schema
	if item.Nullable {
		errs = append(errs, field.Forbidden(at.Child("items", "nullable"), "cannot be nullable when x-kubernetes-list-type is "+*s.XListType))
	}
	if !isList(s, "map") {
		return errs
	}
	for _, key := range s.XListMapKeys {
		property, ok := item.Properties[key]
		if !ok {
			continue // see listMap
		}
		where := at.Child("items", "properties").Key(key)
		if property.Default == nil && !slices.Contains(item.Required, key) {
			errs = append(errs, field.Required(where.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if property.Nullable {
			errs = append(errs, field.Forbidden(where.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return errs
}
