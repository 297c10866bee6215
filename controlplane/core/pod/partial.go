// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// partial holds the rules of a subresource through which one part of a Pod
// changes that its other rules keep.
type partial struct {
	// take moves that part from one spec to another, and reports whether it can: if
	// not, all that was asked for is left to check.
	take func(to, from *corev1.PodSpec) bool
	// check has the rules of the change.
	check func(f *valid.Field, now, before *corev1.Pod)
	// refuse says why the part of a Pod never changes; "": it may.
	refuse func(before *corev1.Pod) string
}

// partialSubresources are those of Pods.
func partialSubresources() []resource.Subresource {
	pods := kind.Definition[corev1.Pod, *corev1.Pod]{Version: "v1", Family: podspec.Family(), Status: true}
	return []resource.Subresource{
		{Name: "ephemeralcontainers", FieldManager: pods.FieldManager("ephemeralcontainers"), Strategy: partial{
			take: func(to, from *corev1.PodSpec) bool {
				to.EphemeralContainers = from.EphemeralContainers
				return true
			},
			check: checkEphemeralChange,
			refuse: func(before *corev1.Pod) string {
				if isMirror(before) {
					return "static pods do not support ephemeral containers"
				}
				return ""
			},
		}},
		{Name: "resize", FieldManager: pods.FieldManager("resize"), Strategy: partial{take: takeResources, check: checkResize, refuse: refuseResize}},
	}
}

// Normalize implements resource.Strategy.
func (partial) Default(obj resource.Object) ([]string, error) {
	defaultPod(obj.(*corev1.Pod))
	return nil, nil
}

// Prepare keeps everything but the part.
func (p partial) Prepare(_ context.Context, obj, old resource.Object) {
	now, before := obj.(*corev1.Pod), old.(*corev1.Pod)
	spec := before.Spec.DeepCopy()
	if !p.take(spec, &now.Spec) {
		return
	}
	now.Spec, now.Status = *spec, before.Status
	now.Labels, now.Annotations, now.OwnerReferences, now.Finalizers = before.Labels, before.Annotations, before.OwnerReferences, before.Finalizers
	now.Generation = before.Generation
	if !equality.Semantic.DeepEqual(now.Spec, before.Spec) {
		now.Generation++
	}
}

// Validate implements resource.Strategy.
func (p partial) Validate(_ context.Context, obj, old resource.Object) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	now, before := obj.(*corev1.Pod), old.(*corev1.Pod)
	if why := p.refuse(before); why != "" {
		return field.ErrorList{field.Forbidden(field.NewPath(""), why)}
	}
	spec := f.Child("spec")
	podspec.Check(&spec, &now.Spec, now.Name, true)
	p.check(&spec, now, before)
	return errs
}

// isMirror reports whether a Pod shows one that a kubelet has read from a file.
func isMirror(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror
}

// Warnings implements resource.Strategy.
func (partial) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }

func checkEphemeralChange(f *valid.Field, now, before *corev1.Pod) {
	for _, c := range before.Spec.EphemeralContainers {
		i := slices.IndexFunc(now.Spec.EphemeralContainers, func(o corev1.EphemeralContainer) bool { return o.Name == c.Name })
		switch {
		case i < 0:
			f.Forbidden("ephemeralContainers", fmt.Sprintf("existing ephemeral containers %q may not be removed\n", c.Name))
		case !equality.Semantic.DeepEqual(c, now.Spec.EphemeralContainers[i]):
			f.Forbidden("ephemeralContainers", fmt.Sprintf("existing ephemeral containers %q may not be changed\n", c.Name)+
				valid.Difference(c, now.Spec.EphemeralContainers[i]))
		}
	}
}
