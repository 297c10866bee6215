// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podspec sets the defaults of the specification of a Pod and validates it, for
// Pods and for all kinds that have a template of Pods.
package podspec

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Family is shared by everything that has a Pod template.
var Family = sync.OnceValue(kind.NewFamily)

// DefaultTemplate sets the defaults of the Pods that a template makes.
func DefaultTemplate(t *corev1.PodTemplateSpec) { Default(&t.Spec) }

// PrepareTemplate drops what the features that are off by default would use.
func PrepareTemplate(t *corev1.PodTemplateSpec) { Prepare(&t.Spec) }

// Prepare drops what the features that are off by default would use.
func Prepare(s *corev1.PodSpec) {
	s.SchedulingGroup = nil
	for i := range s.Volumes {
		prepareVolume(&s.Volumes[i])
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil {
				l.StopSignal = nil
			}
		}
	}
}

// prepareVolume drops the owners of files: AtomicWriteVolumeUserFields is off by default.
func prepareVolume(v *corev1.Volume) {
	keys := func(items []corev1.KeyToPath) {
		for i := range items {
			items[i].User = nil
		}
	}
	fields := func(items []corev1.DownwardAPIVolumeFile) {
		for i := range items {
			items[i].User = nil
		}
	}
	switch {
	case v.Secret != nil:
		v.Secret.DefaultUser = nil
		keys(v.Secret.Items)
	case v.ConfigMap != nil:
		v.ConfigMap.DefaultUser = nil
		keys(v.ConfigMap.Items)
	case v.DownwardAPI != nil:
		v.DownwardAPI.DefaultUser = nil
		fields(v.DownwardAPI.Items)
	case v.Projected != nil:
		if len(v.Projected.Sources) == 0 {
			v.Projected.Sources = nil
		}
		v.Projected.DefaultUser = nil
		for i := range v.Projected.Sources {
			switch s := &v.Projected.Sources[i]; {
			case s.Secret != nil:
				keys(s.Secret.Items)
			case s.DownwardAPI != nil:
				fields(s.DownwardAPI.Items)
			case s.ConfigMap != nil:
				keys(s.ConfigMap.Items)
			case s.ServiceAccountToken != nil:
				s.ServiceAccountToken.User = nil
			case s.ClusterTrustBundle != nil:
				s.ClusterTrustBundle.User = nil
			case s.PodCertificate != nil:
				s.PodCertificate.User = nil
			}
		}
	}
}

// ValidateTemplate checks the Pods that a template makes.
func ValidateTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	f := valid.At(path, &errs)
	CheckTemplate(&f, t)
	return errs
}

// CheckTemplate has the rules of the Pods that a template makes.
func CheckTemplate(f *valid.Field, t *corev1.PodTemplateSpec) {
	f.Labels("labels", t.Labels)
	f.Annotations("annotations", t.Annotations)
	annotations := f.Child("annotations")
	if t.Annotations != nil {
		CheckAnnotations(&annotations, t.Annotations, &t.Spec)
	}
	spec := f.Child("spec")
	Check(&spec, &t.Spec, "", false)
	CheckProfiles(&spec, t.Annotations, &t.Spec)
	if len(t.Spec.EphemeralContainers) > 0 {
		spec.Forbidden("ephemeralContainers", "ephemeral containers not allowed in pod template")
	}
}
