// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate validates a new definition, in the internal form that its conversion from v1
// makes. The context bounds the evaluation of rules on defaults.
func Validate(ctx context.Context, crd *apiextensions.CustomResourceDefinition) field.ErrorList {
	c := checker{ctx: ctx, ratchet: ratcheting{caBundle: true}}
	c.name(crd)
	c.definition(crd)
	c.approval(crd, nil)
	c.preservation(crd)
	return c.errs
}

// ValidateUpdate validates a definition that replaces another.
func ValidateUpdate(ctx context.Context, crd, old *apiextensions.CustomResourceDefinition) field.ErrorList {
	c := checker{ctx: ctx, ratchet: ratchetingOf(crd, old)}
	c.definition(crd)
	c.approval(crd, old)
	if !preserves(&old.Spec) {
		c.preservation(crd)
	}
	return c.errs
}

// ValidateStatusUpdate validates an update of the status subresource.
func ValidateStatusUpdate(crd *apiextensions.CustomResourceDefinition) field.ErrorList {
	var c checker
	c.status(&crd.Status)
	return c.errs
}

// checker collects the errors of one definition.
type checker struct {
	ctx     context.Context
	errs    field.ErrorList
	ratchet ratcheting
}

func (c *checker) invalid(at *field.Path, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at, value, detail))
}

func (c *checker) required(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Required(at, detail))
}

func (c *checker) forbidden(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Forbidden(at, detail))
}

// oneOf requires one of the accepted values.
func (c *checker) oneOf(at *field.Path, value string, accepted ...string) {
	if value == "" {
		c.required(at, "")
		return
	}
	supported(c, at, value, accepted...)
}

// supported requires one of the supported values.
func supported[S ~string](c *checker, at *field.Path, value S, values ...S) {
	if !slices.Contains(values, value) {
		c.errs = append(c.errs, field.NotSupported(at, value, values))
	}
}

// name validates the name, which follows from the spec.
func (c *checker) name(crd *apiextensions.CustomResourceDefinition) {
	want := crd.Spec.Names.Plural + "." + crd.Spec.Group
	at := field.NewPath("metadata")
	for _, n := range []struct{ field, value string }{{"generateName", crd.GenerateName}, {"name", crd.Name}} {
		if n.value != "" && n.value != want {
			c.invalid(at.Child(n.field), n.value, `must be spec.names.plural+"."+spec.group`)
		}
	}
}

// definition validates what new and changed definitions have in common.
func (c *checker) definition(crd *apiextensions.CustomResourceDefinition) {
	c.spec(&crd.Spec)
	c.immutable(&crd.Spec)
	c.status(&crd.Status)
	c.storedVersions(crd.Status.StoredVersions, crd.Spec.Versions)
}

func (c *checker) status(status *apiextensions.CustomResourceDefinitionStatus) {
	c.names(&status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

// storedVersions requires that no stored version is removed from the spec.
func (c *checker) storedVersions(stored []string, versions []apiextensions.CustomResourceDefinitionVersion) {
	at := field.NewPath("status", "storedVersions")
	if len(stored) == 0 {
		c.invalid(at, stored, "must have at least one stored version")
		return
	}
	left := map[string]int{} // versions that are not in the spec, and their last index
	for i, v := range stored {
		left[v] = i
	}
	for i := range versions {
		v := &versions[i]
		if _, ok := left[v.Name]; !ok && v.Storage {
			c.invalid(at, stored, "must have the storage version "+v.Name)
		}
		delete(left, v.Name)
	}
	for i, v := range stored {
		if last, ok := left[v]; ok && last == i {
			c.invalid(at.Index(i), v, fmt.Sprintf("missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", v))
		}
	}
}

// approval validates the annotation of definitions in groups of the Kubernetes
// community. An unchanged value is valid.
func (c *checker) approval(crd, old *apiextensions.CustomResourceDefinition) {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return
	}
	state, reason := apihelpers.GetAPIApprovalState(crd.Annotations)
	if old != nil {
		if before, _ := apihelpers.GetAPIApprovalState(old.Annotations); before == state {
			return
		}
	}
	at := field.NewPath("metadata", "annotations").Key(v1.KubeAPIApprovedAnnotation)
	switch state {
	case apihelpers.APIApproved, apihelpers.APIApprovalBypassed:
	case apihelpers.APIApprovalMissing:
		c.required(at, reason)
	default:
		c.invalid(at, crd.Annotations[v1.KubeAPIApprovedAnnotation], reason)
	}
}

func (c *checker) preservation(crd *apiextensions.CustomResourceDefinition) {
	if preserves(&crd.Spec) {
		c.invalid(field.NewPath("spec", "preserveUnknownFields"), crd.Spec.PreserveUnknownFields,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead")
	}
}

// preserves reports whether objects keep fields that are not in the schema.
func preserves(spec *apiextensions.CustomResourceDefinitionSpec) bool {
	return spec.PreserveUnknownFields != nil && *spec.PreserveUnknownFields
}
