// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// plugin is one admission of this package.
type plugin struct {
	name string
	make func(storage.Viewer) resource.Admission
	// to are the resources that it applies to; see [resource.Restrict].
	to []string
}

// plugins are all of them, in the order of Kubernetes.
func plugins() []plugin {
	return []plugin{
		{"LimitRanger", func(s storage.Viewer) resource.Admission { return NewLimitRanger(s) }, []string{"pods", "persistentvolumeclaims"}},
		{"TaintNodesByCondition", func(storage.Viewer) resource.Admission { return NodeTaints{} }, []string{"nodes"}},
		{"PodSecurity", func(s storage.Viewer) resource.Admission { return NewPodSecurity(s) }, []string{
			"pods", "namespaces", "podtemplates", "replicationcontrollers",
			"replicasets.apps", "deployments.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch",
		}},
		{"Priority", func(s storage.Viewer) resource.Admission { return NewPriority(s) }, []string{"pods", "priorityclasses.scheduling.k8s.io"}},
		{"DefaultTolerationSeconds", func(storage.Viewer) resource.Admission { return Tolerations{} }, []string{"pods"}},
		{"DefaultStorageClass", func(s storage.Viewer) resource.Admission { return NewStorageClass(s) }, []string{"persistentvolumeclaims"}},
		{"StorageObjectInUseProtection", func(storage.Viewer) resource.Admission { return StorageProtection{} }, []string{"persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses.storage.k8s.io"}},
		{"PersistentVolumeClaimResize", func(s storage.Viewer) resource.Admission { return NewVolumeResize(s) }, []string{"persistentvolumeclaims"}},
		{"RuntimeClass", func(s storage.Viewer) resource.Admission { return NewRuntimeClass(s) }, []string{"pods"}},
		{"DefaultIngressClass", func(s storage.Viewer) resource.Admission { return NewIngressClass(s) }, []string{"ingresses.networking.k8s.io"}},
		{"PodTopologyLabels", func(s storage.Viewer) resource.Admission { return NewTopologyLabels(s) }, []string{"pods", "bindings"}},
		{"NodeDeclaredFeatureValidator", func(s storage.Viewer) resource.Admission { return NewDeclaredFeatures(s) }, []string{"pods"}},
		{"PodResizeValidator", func(s storage.Viewer) resource.Admission { return NewPodResize(s) }, []string{"pods"}},
	}
}

// Names returns the names of the admissions of this package, as kube-apiserver
// has them.
func Names() []string {
	var names []string
	for _, p := range plugins() {
		names = append(names, p.name)
	}
	return names
}

// Chain returns all admissions of this package over the objects of a store, but
// for those to leave out.
func Chain(store storage.Viewer, disable ...string) resource.Admissions {
	var chain resource.Admissions
	for _, p := range plugins() {
		if !slices.Contains(disable, p.name) {
			chain = append(chain, resource.Restrict(p.make(store), p.to...))
		}
	}
	return chain
}

// Forbidden is the 403 with which an admission refuses a request, under the name
// of its object or the prefix of the name that it is going to get.
func Forbidden(r *resource.AdmissionRequest, format string, args ...any) error {
	name := r.Name
	if name == "" && r.Object != nil {
		name = cmp.Or(r.Object.GetName(), r.Object.GetGenerateName(), "Unknown")
	}
	return apierrors.NewForbidden(r.Resource.GroupResource(), name, fmt.Errorf(format, args...))
}

// written returns the object of a creation or update of a kind, nil if the
// request is about something else or about a subresource.
func written[T any](r *resource.AdmissionRequest) *T {
	if r.Subresource != "" || r.Operation != resource.Create && r.Operation != resource.Update {
		return nil
	}
	obj, _ := any(r.Object).(*T)
	return obj
}

// created is the same for creations alone.
func created[T any](r *resource.AdmissionRequest) *T {
	if r.Operation != resource.Create {
		return nil
	}
	return written[T](r)
}

// podBefore is the Pod that an update replaces, nil for a creation.
func podBefore(r *resource.AdmissionRequest) *corev1.Pod {
	p, _ := r.Old.(*corev1.Pod)
	return p
}
