// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// AppArmor gives the containers of new Pods the profiles that annotations have
// for them, which is where they were before Kubernetes 1.30. It is no plugin:
// Kubernetes has no way to leave it out (KEP-24).
type AppArmor struct{}

var _ resource.Admission = AppArmor{}

// annotated returns a new Pod that may have such annotations.
func (AppArmor) annotated(r *resource.AdmissionRequest) *corev1.Pod {
	p, _ := r.Object.(*corev1.Pod)
	if p == nil || r.Operation != resource.Create || r.Subresource != "" || p.Spec.OS != nil && p.Spec.OS.Name == corev1.Windows {
		return nil
	}
	for key := range p.Annotations {
		if strings.HasPrefix(key, AppArmorOfContainer) {
			return p
		}
	}
	return nil
}

// Mutates implements [resource.Mutator].
func (a AppArmor) Mutates(r *resource.AdmissionRequest) bool { return a.annotated(r) != nil }

// Admit implements [resource.Admission].
func (a AppArmor) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	p := a.annotated(r)
	if p == nil {
		return nil
	}
	var ofPod *corev1.AppArmorProfile
	if c := p.Spec.SecurityContext; c != nil {
		ofPod = c.AppArmorProfile
	}
	eachContainer(&p.Spec, func(c *corev1.Container) {
		v, ok := p.Annotations[AppArmorOfContainer+c.Name]
		if !ok || c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
			return
		}
		profile := validProfile(AppArmorProfile(v))
		if profile != nil {
			if equality.Semantic.DeepEqual(profile, ofPod) {
				return
			}
			if c.SecurityContext == nil {
				c.SecurityContext = &corev1.SecurityContext{}
			}
			c.SecurityContext.AppArmorProfile = profile
		}
		r.Warn(field.NewPath("metadata", "annotations").Key(AppArmorOfContainer+c.Name).String() + ": " + UseAppArmorField)
	})
	return nil
}

// UseAppArmorField is the warning about a profile in an annotation.
const UseAppArmorField = `deprecated since v1.30; use the "appArmorProfile" field instead`

// validProfile returns a profile, nil if it is wrong.
func validProfile(p *corev1.AppArmorProfile) *corev1.AppArmorProfile {
	var errs field.ErrorList
	f := valid.Root(&errs)
	if checkAppArmor(&f, p); len(errs) > 0 {
		return nil
	}
	return p
}

// Validate implements [resource.Admission].
func (AppArmor) Validate(context.Context, *resource.AdmissionRequest) error { return nil }
