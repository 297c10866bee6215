// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSelectable is the maximum number of selectable fields of a version.
const maxSelectable = 8

// selectable validates selectableFields. The version is "" for the fields of all
// versions.
func (c *checker) selectable(fields []apiextensions.SelectableField, in *apiextensions.CustomResourceValidation, version string, above *field.Path) {
	s, err := schema.NewStructural(in.OpenAPIV3Schema)
	if err != nil {
		c.invalid(above.Child("schema.openAPIV3Schema"), "", err.Error())
	}
	if s == nil {
		s = &schema.Structural{} // no path is valid in it
	}
	list, distinct := above.Child("selectableFields"), sets.New[string]()
	for i := range fields {
		at, path := list.Index(i).Child("jsonPath"), fields[i].JSONPath
		if path == "" {
			c.required(at, "")
			continue
		}
		found, target, err := cel.ValidFieldPath(path, s, cel.WithFieldPathAllowArrayNotation(false))
		if err != nil {
			c.invalid(at, path, fmt.Sprintf("is an invalid path: %v", err))
			continue
		}
		if found.Root().String() == "metadata" {
			c.invalid(at, path, "must not point to fields in metadata")
		}
		if !isScalar(target) {
			c.invalid(at, path, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.")
		}
		if distinct.Has(found.String()) {
			c.errs = append(c.errs, field.Duplicate(at, path))
		}
		distinct.Insert(found.String())
	}
	if distinct.Len() > maxSelectable && !c.ratchet.crowded.Has(version) {
		c.errs = append(c.errs, field.TooMany(list, distinct.Len(), maxSelectable))
	}
}

// isScalar reports whether field selectors can match values of a schema.
func isScalar(s *schema.Structural) bool {
	return s != nil && (s.Type == "string" || s.Type == "boolean" || s.Type == "integer")
}
