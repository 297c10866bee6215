// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The types and formats of columns, in error messages.
const (
	columnTypes   = "boolean,date,integer,number,string"
	columnFormats = "byte,date,date-time,double,float,int32,int64,password"
)

func among(list, value string) bool { return slices.Contains(strings.Split(list, ","), value) }

// label validates a DNS label; if an empty one is an error, it is reported elsewhere.
func (c *checker) label(at *field.Path, value string) {
	if errs := utilvalidation.IsDNS1035Label(value); len(errs) > 0 {
		c.invalid(at, value, strings.Join(errs, ","))
	}
}

// names validates names that are requested or accepted.
func (c *checker) names(names *apiextensions.CustomResourceDefinitionNames, at *field.Path) {
	if names.Plural != "" {
		c.label(at.Child("plural"), names.Plural)
	}
	if names.Singular != "" {
		c.label(at.Child("singular"), names.Singular)
	}
	c.kind(at.Child("kind"), names.Kind)
	c.kind(at.Child("listKind"), names.ListKind)
	for i, name := range names.ShortNames {
		c.label(at.Child("shortNames").Index(i), name)
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		c.invalid(at.Child("listKind"), names.ListKind, "kind and listKind may not be the same")
	}
	for i, category := range names.Categories {
		c.label(at.Child("categories").Index(i), category)
	}
}

func (c *checker) kind(at *field.Path, kind string) {
	if kind == "" {
		return
	}
	if errs := utilvalidation.IsDNS1035Label(strings.ToLower(kind)); len(errs) > 0 {
		c.invalid(at, kind, "may have mixed case, but should otherwise match: "+strings.Join(errs, ","))
	}
}

// columns validates additionalPrinterColumns.
func (c *checker) columns(columns []apiextensions.CustomResourceColumnDefinition, in *field.Path) {
	const types, formats = "must be one of " + columnTypes, "must be one of " + columnFormats
	for i := range columns {
		col, at := &columns[i], in.Child("additionalPrinterColumns").Index(i)
		if col.Name == "" {
			c.required(at.Child("name"), "")
		}
		if col.Type == "" {
			c.required(at.Child("type"), types)
		} else if !among(columnTypes, col.Type) {
			c.invalid(at.Child("type"), col.Type, types)
		}
		if col.Format != "" && !among(columnFormats, col.Format) {
			c.invalid(at.Child("format"), col.Format, formats)
		}
		c.path(at.Child("JSONPath"), col.JSONPath, "")
	}
}

// subresources validates the paths of scale.
func (c *checker) subresources(s *apiextensions.CustomResourceSubresources, at *field.Path) {
	if s == nil || s.Scale == nil {
		return
	}
	c.path(at.Child("scale.specReplicasPath"), s.Scale.SpecReplicasPath, "should be a json path under .spec", ".spec.")
	c.path(at.Child("scale.statusReplicasPath"), s.Scale.StatusReplicasPath, "should be a json path under .status", ".status.")
	if selector := s.Scale.LabelSelectorPath; selector != nil && *selector != "" {
		c.path(at.Child("scale.labelSelectorPath"), *selector, "should be a json path under either .spec or .status", ".spec.", ".status.")
	}
}

// path requires a JSON path, below one of a few fields if any are named.
func (c *checker) path(at *field.Path, path, below string, fields ...string) {
	under := func(f string) bool { return strings.HasPrefix(path, f) }
	switch {
	case path == "":
		c.required(at, "")
	case path[0] != '.':
		c.invalid(at, path, "must be a simple json path starting with .")
	case len(fields) > 0 && !slices.ContainsFunc(fields, under):
		c.invalid(at, path, below)
	}
}
