// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// RuntimeClass gives new Pods the overhead, the node selector and the
// tolerations of their runtime class.
type RuntimeClass struct{ classes *Lister[nodev1.RuntimeClass] }

var _ resource.Admission = (*RuntimeClass)(nil)

// NewRuntimeClass returns the admission over the classes of a store.
func NewRuntimeClass(store storage.Viewer) *RuntimeClass {
	return &RuntimeClass{NewLister[nodev1.RuntimeClass](store, "node.k8s.io/runtimeclasses")}
}

// Mutates implements [resource.Mutator].
func (a *RuntimeClass) Mutates(r *resource.AdmissionRequest) bool {
	pod := created[corev1.Pod](r)
	return pod != nil && pod.Spec.RuntimeClassName != nil
}

// Admit implements [resource.Admission].
func (a *RuntimeClass) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	pod := created[corev1.Pod](r)
	if pod == nil {
		return nil
	}
	class, err := a.classOf(r, pod)
	if err != nil {
		return err
	}
	if class == nil {
		return nil
	}
	if class.Overhead != nil {
		if pod.Spec.Overhead != nil && !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed) {
			return Forbidden(r, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
		}
		pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	if class.Scheduling == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		value := class.Scheduling.NodeSelector[key]
		if given, ok := pod.Spec.NodeSelector[key]; ok && given != value {
			return Forbidden(r, "conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, given)
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(has corev1.Toleration) bool { return equality.Semantic.DeepEqual(has, t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, *t.DeepCopy())
		}
	}
	return nil
}

// Validate implements [resource.Admission].
func (a *RuntimeClass) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	pod := created[corev1.Pod](r)
	if pod == nil || pod.Spec.Overhead == nil {
		return nil
	}
	class, err := a.classOf(r, pod)
	if err != nil {
		return err
	}
	if class == nil || class.Overhead == nil {
		return Forbidden(r, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	}
	return nil
}

// classOf returns the runtime class that a Pod names, nil if it names none.
func (a *RuntimeClass) classOf(r *resource.AdmissionRequest, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	if pod.Spec.RuntimeClassName == nil {
		return nil, nil
	}
	class, err := a.classes.Get(*pod.Spec.RuntimeClassName)
	if err == nil && class == nil {
		err = Forbidden(r, "pod rejected: RuntimeClass %q not found", *pod.Spec.RuntimeClassName)
	}
	return class, err
}
