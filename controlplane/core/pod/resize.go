// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// takeResources moves what a resize changes, if the containers are the same.
func takeResources(to, from *corev1.PodSpec) bool {
	if !sameNames(to.Containers, from.Containers) || !sameNames(to.InitContainers, from.InitContainers) {
		return false
	}
	if from.Resources != nil { // who does not know the field leaves it as it is
		to.Resources = from.Resources
	}
	take := func(to, from []corev1.Container) {
		for i := range to {
			to[i].Resources, to[i].ResizePolicy = from[i].Resources, from[i].ResizePolicy
		}
	}
	take(to.Containers, from.Containers)
	take(to.InitContainers, from.InitContainers)
	defaultWhole(to)
	return true
}

func sameNames(a, b []corev1.Container) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}

func refuseResize(before *corev1.Pod) string {
	switch os := before.Spec.OS; {
	case isMirror(before):
		return "static pods cannot be resized"
	case os != nil && os.Name == corev1.Windows:
		return "windows pods cannot be resized"
	}
	return ""
}

// checkResize has the rules of resources that change while containers run: CPU
// and memory of the containers and of the Pod as a whole, neither of which may
// lose a request or a limit (KEP-1287, KEP-5419).
func checkResize(f *valid.Field, now, before *corev1.Pod) {
	if qosClass(&now.Spec) != before.Status.QOSClass {
		f.Invalid(valid.Self, now.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	}
	if !canResize(before) {
		f.Forbidden(valid.Self, "Pod running on node without support for resize")
	}
	rest := now.Spec.DeepCopy()
	checkWholeResize(f, rest, &before.Spec)
	same := checkSameContainers(f, "containers", now.Spec.Containers, before.Spec.Containers)
	if !checkSameContainers(f, "initContainers", now.Spec.InitContainers, before.Spec.InitContainers) || !same {
		return
	}
	checkNothingRemoved(f, "initContainers", now.Spec.InitContainers, before.Spec.InitContainers)
	checkNothingRemoved(f, "containers", now.Spec.Containers, before.Spec.Containers)
	const only = "only cpu and memory resources are mutable"
	for i := range rest.Containers {
		if !resized(&rest.Containers[i], &before.Spec.Containers[i]) {
			f.Forbidden(valid.Self, only)
		}
	}
	list := f.Child("initContainers")
	for i := range rest.InitContainers {
		c, old, at := &rest.InitContainers[i], &before.Spec.InitContainers[i], list.Index(i)
		changed := !equality.Semantic.DeepEqual(c, old)
		if !resized(c, old) {
			at.Forbidden(valid.Self, "only cpu and memory resources for init or sidecar containers are mutable")
		}
		if !changed || podspec.IsSidecar(c) {
			continue
		}
		for _, p := range c.ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer {
				at.Forbidden(valid.Self, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
			}
		}
	}
	if f.Len() == 0 && !equality.Semantic.DeepEqual(rest, &before.Spec) {
		f.Forbidden(valid.Self, only)
	}
}

// canResize reports whether the node of a Pod can, which shows in what it says of
// containers that run.
func canResize(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil {
			return s.Resources != nil
		}
	}
	return true
}

func checkSameContainers(f *valid.Field, name string, now, before []corev1.Container) bool {
	if len(now) != len(before) {
		f.Forbidden(name, name+" may not be added or removed on resize")
		return false
	}
	list := f.Child(name)
	for i := range now {
		if at := list.Index(i); now[i].Name != before[i].Name {
			at.Forbidden("name", name+" may not be renamed or reordered on resize")
		}
	}
	return sameNames(now, before)
}

func checkNothingRemoved(f *valid.Field, name string, now, before []corev1.Container) {
	list := f.Child(name)
	for i := range now {
		container := list.Index(i)
		at := container.Child("resources")
		checkKept(&at, &now[i].Resources, &before[i].Resources, "resource")
	}
}

func checkKept(f *valid.Field, now, before *corev1.ResourceRequirements, what string) {
	if lost(now.Requests, before.Requests) {
		f.Forbidden("requests", what+" requests cannot be removed")
	}
	if lost(now.Limits, before.Limits) {
		f.Forbidden("limits", what+" limits cannot be removed")
	}
}

func lost(now, before corev1.ResourceList) bool {
	for name := range before {
		if _, ok := now[name]; !ok {
			return true
		}
	}
	return false
}

// checkWholeResize has the rules of the resources of a Pod as a whole. Of what
// may change of them it puts back into now what was before.
func checkWholeResize(f *valid.Field, now, before *corev1.PodSpec) {
	is, was := now.Resources, before.Resources
	const cannot = "pod-level resources cannot be removed"
	switch {
	case !asksFor(is) && !asksFor(was):
		return
	case is == nil:
		f.Forbidden("resources", cannot)
		return
	case was != nil:
		at := f.Child("resources")
		checkKept(&at, is, was, "pod-level resource")
	default:
		was = &corev1.ResourceRequirements{}
	}
	putBack(is, was)
	if before.Resources == nil && len(is.Requests)+len(is.Limits)+len(is.Claims) == 0 {
		now.Resources = nil
	}
	if !equality.Semantic.DeepEqual(now.Resources, before.Resources) {
		f.Forbidden(valid.Self, "only cpu and memory resources are mutable at pod-level")
	}
}

func asksFor(r *corev1.ResourceRequirements) bool {
	return r != nil && len(r.Requests)+len(r.Limits) > 0
}

// resized puts CPU and memory of a container back, and reports whether it is then
// as before.
func resized(now, before *corev1.Container) bool {
	putBack(&now.Resources, &before.Resources)
	now.Resources.Claims = nil // which Kubernetes forgets here
	return equality.Semantic.DeepEqual(now, before)
}

// putBack sets CPU and memory to what they were.
func putBack(now, before *corev1.ResourceRequirements) {
	one := func(now, before corev1.ResourceList) corev1.ResourceList {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			delete(now, name)
			if q, ok := before[name]; ok {
				if now == nil {
					now = corev1.ResourceList{}
				}
				now[name] = q
			}
		}
		return now
	}
	now.Requests, now.Limits = one(now.Requests, before.Requests), one(now.Limits, before.Limits)
}
