// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
)

// builtinResources returns the built-in kinds.
func builtinResources() []*apiserver.Resource {
	simple := func(group, version, plural, singular, kind string, namespaced bool, newObject func() apiserver.Object, short ...string) *apiserver.Resource {
		bucket := plural
		if group != "" {
			bucket = group + "/" + plural
		}
		return &apiserver.Resource{
			Names:   apiserver.Names{Group: group, Plural: plural, Singular: singular, Kind: kind, ListKind: kind + "List", Namespaced: namespaced, ShortNames: short},
			Storage: apiserver.Storage{Bucket: bucket, Version: version},
			Versions: []apiserver.Version{{
				Name: version, New: newObject, Strategy: plainStrategy{}, StrategicMerge: true,
			}},
			Update: apiserver.UpdateRules{Unconditional: true},
		}
	}
	ns := simple("", "v1", "namespaces", "namespace", "Namespace", false, func() apiserver.Object { return &corev1.Namespace{} }, "ns")
	ns.Versions[0].Strategy = namespaceStrategy{}
	ns.Versions[0].Subresources = []apiserver.Subresource{{Name: "status", Strategy: namespaceStatus{}}, {Name: "finalize", Strategy: namespaceFinalize{}, Verbs: []string{"update"}}}
	ns.Deletion.Holds = func(obj apiserver.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 }
	ns.Deletion.OneByOne = true
	ns.Deletion.Mark = func(obj apiserver.Object) { obj.(*corev1.Namespace).Status.Phase = corev1.NamespaceTerminating }
	return []*apiserver.Resource{
		ns,
		simple("", "v1", "configmaps", "configmap", "ConfigMap", true, func() apiserver.Object { return &corev1.ConfigMap{} }, "cm"),
		simple("", "v1", "secrets", "secret", "Secret", true, func() apiserver.Object { return &corev1.Secret{} }),
		simple("", "v1", "events", "event", "Event", true, func() apiserver.Object { return &corev1.Event{} }, "ev"),
		simple("coordination.k8s.io", "v1", "leases", "lease", "Lease", true, func() apiserver.Object { return &coordinationv1.Lease{} }),
	}
}

type plainStrategy struct{}

func (plainStrategy) Normalize(apiserver.Object) ([]string, error)                { return nil, nil }
func (plainStrategy) Prepare(context.Context, apiserver.Object, apiserver.Object) {}
func (plainStrategy) Warnings(context.Context, apiserver.Object, apiserver.Object) []string {
	return nil
}
func (plainStrategy) Validate(context.Context, apiserver.Object, apiserver.Object) field.ErrorList {
	return nil
}

type namespaceStrategy struct{ plainStrategy }

func (namespaceStrategy) Prepare(_ context.Context, obj, old apiserver.Object) {
	ns := obj.(*corev1.Namespace)
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
	if old == nil {
		ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
		return
	}
	ns.Spec = old.(*corev1.Namespace).Spec
	ns.Status = old.(*corev1.Namespace).Status
}

type namespaceStatus struct{ plainStrategy }

func (namespaceStatus) Prepare(_ context.Context, obj, old apiserver.Object) {
	obj.(*corev1.Namespace).Spec = old.(*corev1.Namespace).Spec
}

type namespaceFinalize struct{ plainStrategy }

func (namespaceFinalize) Prepare(_ context.Context, obj, old apiserver.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}
