// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/crdvalidation"
)

// Bucket holds the definitions in the store.
const Bucket = "apiextensions.k8s.io/customresourcedefinitions"

// definitionStrategy holds the rules of definitions.
type definitionStrategy struct{ of *Definitions }

// definitionStatusStrategy holds the rules of their status subresource.
type definitionStatusStrategy struct{ of *Definitions }

var (
	_ resource.Strategy = definitionStrategy{}
	_ resource.Strategy = definitionStatusStrategy{}
)

// Normalize sets defaults.
func (definitionStrategy) Default(obj resource.Object) ([]string, error) {
	v1.SetObjectDefaults_CustomResourceDefinition(obj.(*v1.CustomResourceDefinition))
	return nil, nil
}

// Normalize sets defaults.
func (s definitionStatusStrategy) Default(obj resource.Object) ([]string, error) {
	return definitionStrategy(s).Default(obj)
}

// Prepare keeps the status, remembers the storage version, counts the
// generation and settles names and conditions.
func (s definitionStrategy) Prepare(_ context.Context, obj, old resource.Object) {
	crd := obj.(*v1.CustomResourceDefinition)
	if old == nil {
		crd.Status = v1.CustomResourceDefinitionStatus{}
		crd.Generation = 1
	} else {
		before := old.(*v1.CustomResourceDefinition)
		crd.Status = *before.Status.DeepCopy()
		crd.Generation = before.Generation
		if !equality.Semantic.DeepEqual(before.Spec, crd.Spec) {
			crd.Generation = before.Generation + 1
		}
	}
	if storage, ok := custom.StorageVersion(crd); ok && !slices.Contains(crd.Status.StoredVersions, storage) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, storage)
	}
	settle(crd, s.of.takenBeside(crd))
}

// Prepare keeps the spec.
func (s definitionStatusStrategy) Prepare(_ context.Context, obj, old resource.Object) {
	crd, before := obj.(*v1.CustomResourceDefinition), old.(*v1.CustomResourceDefinition)
	crd.Spec = *before.Spec.DeepCopy()
	crd.Generation = before.Generation
	settle(crd, s.of.takenBeside(crd))
}

// Validate checks a definition. A new one that equals one that has passed
// before is not checked again.
func (s definitionStrategy) Validate(ctx context.Context, obj, old resource.Object) (errs field.ErrorList) {
	crd := obj.(*v1.CustomResourceDefinition).DeepCopy()
	// What Prepare has settled follows from the spec, and so would its faults.
	settled := crd.Status
	crd.Status = v1.CustomResourceDefinitionStatus{}
	if old != nil {
		crd.Status = old.(*v1.CustomResourceDefinition).Status
	}
	crd.Status.StoredVersions = settled.StoredVersions
	if old != nil {
		return validateWith(crd, old, func(crd, old *apiextensions.CustomResourceDefinition) field.ErrorList {
			return crdvalidation.ValidateUpdate(ctx, crd, old)
		})
	}
	content := struct {
		Name     string
		Approval string
		Spec     *v1.CustomResourceDefinitionSpec
	}{crd.Name, crd.Annotations[v1.KubeAPIApprovedAnnotation], &crd.Spec}
	s.of.options.Schemas.Once(content, func() bool {
		errs = validateWith(crd, nil, func(crd, _ *apiextensions.CustomResourceDefinition) field.ErrorList {
			return crdvalidation.Validate(ctx, crd)
		})
		return len(errs) == 0
	})
	return errs
}

// Validate checks the status of a definition.
func (definitionStatusStrategy) Validate(_ context.Context, obj, old resource.Object) field.ErrorList {
	return validateWith(obj.(*v1.CustomResourceDefinition), old, func(crd, _ *apiextensions.CustomResourceDefinition) field.ErrorList {
		return crdvalidation.ValidateStatusUpdate(crd)
	})
}

// validateWith runs a check that works on the internal form of definitions.
func validateWith(crd *v1.CustomResourceDefinition, old resource.Object, check func(crd, old *apiextensions.CustomResourceDefinition) field.ErrorList) field.ErrorList {
	var internal, before apiextensions.CustomResourceDefinition
	if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if old != nil {
		if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(old.(*v1.CustomResourceDefinition), &before, nil); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
	}
	return check(&internal, &before)
}

// Warnings returns those of formats that mean nothing.
func (definitionStrategy) Warnings(_ context.Context, obj, old resource.Object) []string {
	crd := obj.(*v1.CustomResourceDefinition)
	var known []string
	if old != nil {
		known = unknownFormats(old.(*v1.CustomResourceDefinition))
	}
	var out []string
	for _, format := range unknownFormats(crd) {
		if !slices.Contains(known, format) {
			out = append(out, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	return out
}

// Warnings of status updates: none.
func (definitionStatusStrategy) Warnings(context.Context, resource.Object, resource.Object) []string {
	return nil
}

func usesWebhook(crd *v1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == v1.WebhookConverter
}

// unknownFormats returns the values of format that validation does not know.
func unknownFormats(crd *v1.CustomResourceDefinition) []string {
	var out []string
	supported := environment.DefaultCompatibilityVersion()
	for i := range crd.Spec.Versions {
		s := crd.Spec.Versions[i].Schema
		if s == nil {
			continue
		}
		visit(s.OpenAPIV3Schema, func(p *v1.JSONSchemaProps) {
			if p.Format == "" {
				return
			}
			out = append(out, validation.GetUnrecognizedFormats(&spec.Schema{SchemaProps: spec.SchemaProps{Format: p.Format, Type: []string{p.Type}}}, supported)...)
		})
	}
	return out
}

// visit calls see for a schema and every schema in it, properties by name.
func visit(s *v1.JSONSchemaProps, see func(*v1.JSONSchemaProps)) {
	if s == nil {
		return
	}
	see(s)
	for _, list := range [][]v1.JSONSchemaProps{s.AllOf, s.OneOf, s.AnyOf} {
		for i := range list {
			visit(&list[i], see)
		}
	}
	visit(s.Not, see)
	if s.Items != nil {
		visit(s.Items.Schema, see)
		for i := range s.Items.JSONSchemas {
			visit(&s.Items.JSONSchemas[i], see)
		}
	}
	for _, more := range []*v1.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if more != nil {
			visit(more.Schema, see)
		}
	}
	for _, table := range []map[string]v1.JSONSchemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		for _, name := range sortedKeys(table) {
			p := table[name]
			visit(&p, see)
		}
	}
}

// holds keeps a definition that is deleted for the first time, so that mark can
// give it the finalizer that from then on keeps it.
func holds(obj resource.Object) bool {
	return apihelpers.FindCRDCondition(obj.(*v1.CustomResourceDefinition), v1.Terminating) == nil
}

// mark gives a definition that is being deleted what makes its objects go first.
func mark(obj resource.Object) {
	crd := obj.(*v1.CustomResourceDefinition)
	if !apihelpers.CRDHasFinalizer(crd, v1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, v1.CustomResourceCleanupFinalizer)
	}
	apihelpers.SetCRDCondition(crd, v1.CustomResourceDefinitionCondition{
		Type: v1.Terminating, Status: v1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
}
