// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/resource"
)

// statusStrategy holds the rules of its status subresource.
type statusStrategy struct{ *strategy }

var _ resource.Strategy = statusStrategy{}

// Prepare takes everything but status and managedFields from the old object.
func (s statusStrategy) Prepare(ctx context.Context, obj, old resource.Object) {
	d, before := obj.(*resource.Doc), old.(*resource.Doc)
	status, record := d.Member("status"), doc.ManagedFields(d)
	*d = *before.Copy()
	d.SetMember("status", status)
	doc.SetManagedFields(d, record)
	s.prepare(ctx, d, before, true)
}

// Validate checks the schema of status alone, but list types and rules of the
// whole object.
func (s statusStrategy) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	return s.validated(ctx, obj, old, s.validateSchema(ctx, obj, old), true)
}

func (s statusStrategy) validateSchema(ctx context.Context, obj, old resource.Object) field.ErrorList {
	d := obj.(*resource.Doc)
	if errs := s.validateType(d); len(errs) > 0 {
		return errs
	}
	structural, v, err := s.compiled()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	accepted := true
	if status := d.Member("status"); status.Exists() && v.status != nil {
		accepted = v.fastStatus.AcceptsValue(status)
	}
	if accepted && s.simple() {
		return nil
	}
	content, before := d.Content(), docOf(old).Content()
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
