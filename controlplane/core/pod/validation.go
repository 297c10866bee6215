// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validatePod(p, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	metadata := f.Child("metadata")
	annotations := metadata.Child("annotations")
	if p.Annotations != nil {
		podspec.CheckAnnotations(&annotations, p.Annotations, &p.Spec)
	}
	spec := f.Child("spec")
	podspec.Check(&spec, &p.Spec, p.Name, true)
	if p.Spec.ServiceAccountName == "" {
		checkTokensHaveAccount(&spec, p.Spec.Volumes)
	}
	list := spec.Child("containers")
	for i := range p.Spec.Containers {
		at := list.Index(i)
		podspec.CheckImage(&at, &p.Spec.Containers[i])
	}
	list = spec.Child("initContainers")
	for i := range p.Spec.InitContainers {
		at := list.Index(i)
		podspec.CheckImage(&at, &p.Spec.InitContainers[i])
	}
	if old != nil {
		checkChange(&f, p, old)
		return errs
	}
	podspec.CheckProfiles(&spec, p.Annotations, &p.Spec)
	if len(p.Spec.EphemeralContainers) > 0 {
		spec.Forbidden("ephemeralContainers", "cannot be set on create")
	}
	if p.Spec.NodeName != "" && len(p.Spec.SchedulingGates) > 0 {
		spec.Forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")
	}
	return errs
}

// checkTokensHaveAccount refuses tokens of no service account.
func checkTokensHaveAccount(f *valid.Field, volumes []corev1.Volume) {
	list := f.Child("volumes")
	for i, v := range volumes {
		if v.Projected == nil {
			continue
		}
		at := list.Index(i)
		projected := at.Child("projected")
		sources := projected.Child("sources")
		for j, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				source := sources.Index(j)
				source.Forbidden("serviceAccountToken", "must not be specified when serviceAccountName is not set")
			}
		}
	}
}
