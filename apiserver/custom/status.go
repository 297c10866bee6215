// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/steer-dev/steer/apiserver/resource"
)

// statusStrategy holds the rules of its status subresource.
type statusStrategy struct{ *strategy }

var _ resource.Strategy = statusStrategy{}

// Prepare takes everything but status and managedFields from the old object.
func (s statusStrategy) Prepare(ctx context.Context, obj, old resource.Object) {
	u := obj.(*unstructured.Unstructured)
	// managedFields are copied without decoding, which costs more than the rest.
	wished := u.Object
	before := old.(*unstructured.Unstructured).Object
	u.Object = maps.Clone(before)
	if metadata, ok := before["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		record, _ := wished["metadata"].(map[string]any)
		keep(metadata, record, "managedFields")
		u.Object["metadata"] = metadata
	}
	keep(u.Object, wished, "status")
	s.prepare(ctx, u.Object, before, true)
}

// Validate checks the schema of status alone, but list types and rules of the
// whole object.
func (s statusStrategy) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	return s.validated(ctx, obj, old, s.validateSchema(ctx, obj, old), true)
}

func (s statusStrategy) validateSchema(ctx context.Context, obj, old resource.Object) field.ErrorList {
	content := obj.(*unstructured.Unstructured).Object
	if errs := s.validateType(content); len(errs) > 0 {
		return errs
	}
	structural, v, err := s.compiled()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	accepted := true
	if status, ok := content["status"]; ok && v.status != nil {
		raw, ok := resource.EncodeValue(status)
		accepted = ok && v.quickStatus.Accepts(raw)
	}
	if accepted && s.simple() {
		return nil
	}
	content = resource.DecodedMembers(content)
	before := resource.DecodedMembers(old.(*unstructured.Unstructured).Object)
	correlated := common.NewCorrelatedObject(content, before, &model.Structural{Structural: structural})
	var errs field.ErrorList
	if status, ok := content["status"]; ok && !accepted {
		var options []validation.ValidationOption
		if structural != nil {
			options = append(options, validation.WithRatcheting(correlated.Key("status")))
		}
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, before["status"], v.status, options...)...)
	}
	errs = append(errs, s.scale.validateStatus(content)...)
	return append(errs, s.validateInvariants(ctx, structural, content, before, correlated, errs)...)
}

// Warnings of status updates: none.
func (statusStrategy) Warnings(context.Context, resource.Object, resource.Object) []string {
	return nil
}
