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
		if p := s.Volumes[i].Projected; p != nil {
			if len(p.Sources) == 0 {
				p.Sources = nil
			}
			for j := range p.Sources {
				p.Sources[j].ClusterTrustBundle, p.Sources[j].PodCertificate = nil, nil
			}
		}
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil {
				l.StopSignal = nil
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
