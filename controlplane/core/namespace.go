// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// namespaces describes Namespaces.
func namespaces() *resource.Resource {
	k := kind.Definition[corev1.Namespace, *corev1.Namespace]{
		Version: "v1", Plural: "namespaces", Short: []string{"ns"}, Cluster: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true},
		NameRule: apivalidation.ValidateNamespaceName,
		Status:   true, Unconditional: true,
		InitialStatus:  func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceActive },
		ValidateStatus: validateNamespaceStatus,
		Defaults:       defaultNamespace,
		Prepare: func(_ context.Context, ns, old *corev1.Namespace) {
			defaultNamespace(ns) // by now a generated name is known
			if old != nil {
				ns.Spec.Finalizers = old.Spec.Finalizers
			} else if !hasFinalizer(ns, corev1.FinalizerKubernetes) {
				ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		},
		Validate: func(ns, old *corev1.Namespace) field.ErrorList {
			var errs field.ErrorList
			for _, f := range ns.Spec.Finalizers {
				errs = append(errs, validFinalizer(field.NewPath("spec", "finalizers"), string(f))...)
			}
			return errs
		},
		Columns: kind.Columns("Name", "Status", "Age"),
		Row: func(ns *corev1.Namespace) []any {
			return []any{ns.Name, string(ns.Status.Phase), kind.Age(ns)}
		},
		Selectable: []kind.Selectable[*corev1.Namespace]{
			kind.Leaf("status.phase", func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }),
		},
		Deletion: resource.DeletionRules{
			NoDeleteCollection: true, ReturnsObject: true,
			Holds: func(obj resource.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 },
			Mark:  func(obj resource.Object) { obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating },
		},
	}
	k.Family = kind.NewFamily()
	k.Subresources = []resource.Subresource{{
		Name: "finalize", Strategy: namespaceFinalize{}, FieldManager: k.FieldManager("finalize"), Verbs: []string{"update"},
	}}
	return k.Resource()
}

// defaultNamespace sets the phase and the label kubernetes.io/metadata.name. An invalid
// generated name does not become a label, so that it is refused once.
func defaultNamespace(ns *corev1.Namespace) {
	kind.OrDefault(&ns.Status.Phase, corev1.NamespaceActive)
	if ns.GenerateName != "" && len(validation.IsValidLabelValue(ns.Name)) > 0 {
		return
	}
	if ns.Name != "" && ns.Labels[corev1.LabelMetadataName] != ns.Name {
		ns.Labels = maps.Clone(ns.Labels)
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
}

// validateNamespaceStatus requires the phase that deletionTimestamp calls for.
func validateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "Phase")
	switch {
	case ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case ns.DeletionTimestamp != nil && ns.Status.Phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}

func hasFinalizer(ns *corev1.Namespace, name corev1.FinalizerName) bool {
	for _, f := range ns.Spec.Finalizers {
		if f == name {
			return true
		}
	}
	return false
}

// validFinalizer checks the name of one of a namespace's own finalizers.
func validFinalizer(path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	f := valid.At(path, &errs)
	f.Finalizer(valid.Self, name)
	return errs
}

// namespaceFinalize holds the rules of the subresource that releases a namespace.
type namespaceFinalize struct{}

// Normalize implements resource.Strategy.
func (namespaceFinalize) Default(resource.Object) ([]string, error) { return nil, nil }

// Prepare keeps the status: the subresource is about spec.finalizers.
func (namespaceFinalize) Prepare(_ context.Context, obj, old resource.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}

// Validate implements resource.Strategy.
func (namespaceFinalize) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

// Warnings implements resource.Strategy.
func (namespaceFinalize) Warnings(context.Context, resource.Object, resource.Object) []string {
	return nil
}
