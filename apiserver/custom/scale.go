// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// scale reads and writes replica counts at the paths that a definition names.
// A nil scale checks nothing.
type scale struct {
	schema                             *Schema
	specPath, statusPath, selectorPath string // as written in the definition
}

var _ resource.Scaler = (*scale)(nil)

func newScale(schema *Schema, s *v1.CustomResourceSubresourceScale) *scale {
	if s == nil {
		return nil
	}
	out := &scale{schema: schema, specPath: s.SpecReplicasPath, statusPath: s.StatusReplicasPath}
	if s.LabelSelectorPath != nil {
		out.selectorPath = *s.LabelSelectorPath
	}
	return out
}

// fieldsOf splits a path such as ".spec.replicas".
func fieldsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// Replicas implements [resource.Scaler]. An object without a wished count has
// no scale; the error comes with the rest of it.
func (s *scale) Replicas(obj resource.Object) (spec, status int32, selector string, err error) {
	content := obj.(*resource.Doc).Content("spec", "status") // where the paths of a definition lead
	wished, found, err := unstructured.NestedInt64(content, fieldsOf(s.specPath)...)
	if err != nil {
		return 0, 0, "", err
	}
	actual, _, err := unstructured.NestedInt64(content, fieldsOf(s.statusPath)...)
	if err != nil {
		return 0, 0, "", err
	}
	if s.selectorPath != "" {
		if selector, _, err = unstructured.NestedString(content, fieldsOf(s.selectorPath)...); err != nil {
			return 0, 0, "", err
		}
	}
	if !found {
		err = apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", s.specPath))
	}
	return int32(wished), int32(actual), selector, err
}

// SetReplicas implements [resource.Scaler]. Where that makes an object that was not there,
// the object gets its defaults.
func (s *scale) SetReplicas(obj resource.Object, replicas int32) error {
	d, path := obj.(*resource.Doc), fieldsOf(s.specPath)
	content := d.Content()
	defer func() { d.SetContent(content) }()
	_, has, _ := unstructured.NestedFieldNoCopy(content, path[:len(path)-1]...)
	if err := unstructured.SetNestedField(content, int64(replicas), path...); err != nil || has {
		return err
	}
	structural, err := s.schema.Structural()
	if err != nil || structural == nil {
		return err
	}
	defaulting.Default(content, structural)
	return nil
}

func (s *scale) validateSpec(content map[string]any) field.ErrorList {
	if s == nil {
		return nil
	}
	return validateCount(content, s.specPath)
}

func (s *scale) validateStatus(content map[string]any) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateCount(content, s.statusPath)
	if s.selectorPath != "" {
		if selector, _, err := unstructured.NestedString(content, fieldsOf(s.selectorPath)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(s.selectorPath), selector, err.Error()))
		}
	}
	return errs
}

func validateCount(content map[string]any, path string) field.ErrorList {
	count, _, err := unstructured.NestedInt64(content, fieldsOf(path)...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(field.NewPath(path), count, err.Error())}
	case count < 0:
		return field.ErrorList{field.Invalid(field.NewPath(path), count, "should be a non-negative integer")}
	case count > math.MaxInt32:
		return field.ErrorList{field.Invalid(field.NewPath(path), count, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}
