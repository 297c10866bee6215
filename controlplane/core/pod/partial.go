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
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// partial holds the rules of a subresource through which one part of a Pod
// changes that its other rules keep.
type partial struct {
	// take moves that part from one spec to another.
	take func(to, from *corev1.PodSpec)
	// check has the rules of the change.
	check func(f *valid.Field, now, before *corev1.Pod)
}

// partialSubresources are those of Pods.
func partialSubresources() []resource.Subresource {
	return []resource.Subresource{
		{Name: "ephemeralcontainers", Strategy: partial{
			take:  func(to, from *corev1.PodSpec) { to.EphemeralContainers = from.EphemeralContainers },
			check: checkEphemeralChange,
		}},
		{Name: "resize", Strategy: partial{take: takeResources, check: checkResize}},
	}
}

// Normalize implements resource.Strategy.
func (partial) Normalize(obj resource.Object) ([]string, error) {
	defaultPod(obj.(*corev1.Pod))
	return nil, nil
}

// Prepare keeps everything but the part.
func (p partial) Prepare(_ context.Context, obj, old resource.Object) {
	now, before := obj.(*corev1.Pod), old.(*corev1.Pod)
	spec := before.Spec.DeepCopy()
	p.take(spec, &now.Spec)
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
	spec := f.Child("spec")
	podspec.Check(&spec, &now.Spec, now.Name, true)
	p.check(&spec, now, before)
	return errs
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
			f.Forbidden("ephemeralContainers", fmt.Sprintf("existing ephemeral containers %q may not be changed\n", c.Name))
		}
	}
}

func takeResources(to, from *corev1.PodSpec) {
	to.Resources = from.Resources
	for _, lists := range [][2][]corev1.Container{{to.Containers, from.Containers}, {to.InitContainers, from.InitContainers}} {
		for i := range lists[0] {
			j := slices.IndexFunc(lists[1], func(c corev1.Container) bool { return c.Name == lists[0][i].Name })
			if j >= 0 {
				lists[0][i].Resources, lists[0][i].ResizePolicy = lists[1][j].Resources, lists[1][j].ResizePolicy
			}
		}
	}
}

// checkResize has the rules of resources that change while containers run.
func checkResize(f *valid.Field, now, before *corev1.Pod) {
	if qosClass(&now.Spec) != before.Status.QOSClass {
		f.Invalid("", now.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	}
	const only = "only cpu and memory resources are mutable"
	for i := range now.Spec.Containers {
		c, old := now.Spec.Containers[i].DeepCopy(), &before.Spec.Containers[i]
		for _, lists := range [][2]corev1.ResourceList{{c.Resources.Limits, old.Resources.Limits}, {c.Resources.Requests, old.Resources.Requests}} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if lists[0] == nil {
					continue
				}
				delete(lists[0], name)
				if q, ok := lists[1][name]; ok {
					lists[0][name] = q
				}
			}
		}
		if !equality.Semantic.DeepEqual(*c, *old) {
			f.Forbidden("", only)
		}
	}
}
