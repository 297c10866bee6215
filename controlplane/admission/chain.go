// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
)

// Plugins returns the admission plugins of this package, in the order of kube-apiserver.
func Plugins(d component.Deps) component.List {
	s := d.Store
	security := NewPodSecurity(s)
	d.Measure(security.counts.evaluations, security.counts.exemptions)
	return component.List{
		component.Plugin("LimitRanger", NewLimitRanger(s), "pods", "persistentvolumeclaims"),
		component.Plugin("TaintNodesByCondition", NodeTaints{}, "nodes"),
		component.Plugin("PodSecurity", security, "pods", "namespaces", "podtemplates", "replicationcontrollers",
			"replicasets.apps", "deployments.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch"),
		component.Plugin("Priority", NewPriority(s), "pods", "priorityclasses.scheduling.k8s.io"),
		component.Plugin("DefaultTolerationSeconds", Tolerations{}, "pods"),
		component.Plugin("DefaultStorageClass", NewStorageClass(s), "persistentvolumeclaims"),
		component.Plugin("StorageObjectInUseProtection", StorageProtection{},
			"persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses.storage.k8s.io"),
		component.Plugin("PersistentVolumeClaimResize", NewVolumeResize(s), "persistentvolumeclaims"),
		component.Plugin("RuntimeClass", NewRuntimeClass(s), "pods"),
		component.Plugin("DefaultIngressClass", NewIngressClass(s), "ingresses.networking.k8s.io"),
		component.Plugin("PodTopologyLabels", NewTopologyLabels(s), "pods", "bindings"),
		component.Plugin("NodeDeclaredFeatureValidator", NewDeclaredFeatures(s), "pods"),
		component.Plugin("PodResizeValidator", NewPodResize(s), "pods"),
	}
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

// OnlyCollected reports whether a request is an update that changes nothing but what the
// garbage collector, or a migration of storage versions, has to: that grants nothing.
func OnlyCollected(r *resource.AdmissionRequest) bool {
	if r.Operation != resource.Update || r.Object == nil || r.Old == nil {
		return false
	}
	same := r.Object.DeepCopyObject().(resource.Object)
	same.SetOwnerReferences(r.Old.GetOwnerReferences())
	same.SetFinalizers(r.Old.GetFinalizers())
	same.SetSelfLink(r.Old.GetSelfLink())
	same.SetManagedFields(r.Old.GetManagedFields())
	return equality.Semantic.DeepEqual(same, r.Old)
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
