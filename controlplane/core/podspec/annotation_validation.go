// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Annotations that were fields to be, of which those that end in a slash go on
// with the name of a container.
const (
	SeccompOfPod        = corev1.SeccompPodAnnotationKey // Kubernetes still checks it
	SeccompOfContainer  = corev1.SeccompContainerAnnotationKeyPrefix
	AppArmorOfContainer = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
)

// Values of these annotations; what is in a file of the node is named after
// inFile.
const (
	unconfined     = "unconfined"
	runtimeDefault = "runtime/default"
	dockerDefault  = "docker/default"
	inFile         = "localhost/"
)

// CheckAnnotations has the rules of annotations that were fields to be.
func CheckAnnotations(f *valid.Field, a map[string]string, spec *corev1.PodSpec) {
	if v, ok := a[corev1.MirrorPodAnnotationKey]; ok && spec.NodeName == "" {
		at := f.Key(corev1.MirrorPodAnnotationKey)
		at.Invalid(valid.Self, v, "must set spec.nodeName if mirror pod annotation is set")
	}
	if v := a[corev1.TolerationsAnnotationKey]; v != "" {
		var tolerations []corev1.Toleration
		if err := json.Unmarshal([]byte(v), &tolerations); err != nil {
			f.Invalid(valid.Self, corev1.TolerationsAnnotationKey, err.Error())
		} else {
			at := f.Child(corev1.TolerationsAnnotationKey)
			at.Tolerations(tolerations)
		}
	}
	if v, ok := a[corev1.PodDeletionCost]; ok && !isDeletionCost(v) {
		at := f.Key(corev1.PodDeletionCost)
		at.Invalid(valid.Self, v, "must be a 32bit integer")
	}
	if !Profiled(a) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		switch {
		case key == SeccompOfPod, strings.HasPrefix(key, SeccompOfContainer):
			checkSeccompAnnotation(f, key, a[key])
		case strings.HasPrefix(key, AppArmorOfContainer):
			at := f.Key(key)
			checkAppArmorAnnotation(&at, strings.TrimPrefix(key, AppArmorOfContainer), a[key], spec)
		}
	}
}

// Profiled reports whether annotations name a profile of a Pod or a container.
func Profiled(a map[string]string) bool {
	for key := range a {
		if key == SeccompOfPod || strings.HasPrefix(key, SeccompOfContainer) || strings.HasPrefix(key, AppArmorOfContainer) {
			return true
		}
	}
	return false
}

func isDeletionCost(v string) bool {
	if v == "" || v != "0" && (v[0] == '+' || v[0] == '0') {
		return false
	}
	_, err := strconv.ParseInt(v, 10, 32)
	return err == nil
}

func checkSeccompAnnotation(f *valid.Field, key, v string) {
	path, local := strings.CutPrefix(v, inFile)
	switch {
	case local:
		f.Descending(key, path)
	case v != unconfined && v != runtimeDefault && v != dockerDefault:
		f.Invalid(key, v, "must be a valid seccomp profile")
	}
}

func checkAppArmorAnnotation(f *valid.Field, container, v string, spec *corev1.PodSpec) {
	found := false
	eachContainer(spec, func(c *corev1.Container) { found = found || c.Name == container })
	if !found {
		f.Invalid(valid.Self, container, "container not found")
	}
	if v != "" && v != runtimeDefault && v != unconfined && !strings.HasPrefix(v, inFile) {
		f.Invalid(valid.Self, v, fmt.Sprintf("invalid AppArmor profile name: %q", v))
	}
}

// eachContainer visits all containers of a Pod.
func eachContainer(spec *corev1.PodSpec, visit func(*corev1.Container)) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		visit((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// CheckProfiles compares the profiles of seccomp and AppArmor in annotations with
// those in fields; f is the spec.
func CheckProfiles(f *valid.Field, a map[string]string, spec *corev1.PodSpec) {
	if !Profiled(a) {
		return
	}
	var ofPod corev1.PodSecurityContext
	if c := spec.SecurityContext; c != nil {
		ofPod = *c
	}
	if v, ok := a[SeccompOfPod]; ok {
		security := f.Child("securityContext")
		checkSeccompMatch(&security, v, ofPod.SeccompProfile)
	}
	EachContainer(f, spec, func(at *valid.Field, c *corev1.Container) {
		var own corev1.SecurityContext
		if c.SecurityContext != nil {
			own = *c.SecurityContext
		}
		security := at.Child("securityContext")
		if v, ok := a[SeccompOfContainer+c.Name]; ok {
			checkSeccompMatch(&security, v, own.SeccompProfile)
		}
		if spec.OS != nil && spec.OS.Name == corev1.Windows {
			return
		}
		profile := own.AppArmorProfile
		if profile == nil {
			profile = ofPod.AppArmorProfile
		}
		if v, ok := a[AppArmorOfContainer+c.Name]; ok && profile != nil {
			checkMatch(&security, "appArmorProfile", "apparmor", v, string(profile.Type), profile.LocalhostProfile)
		}
	})
}

func checkSeccompMatch(f *valid.Field, v string, p *corev1.SeccompProfile) {
	if p == nil {
		return
	}
	if v == dockerDefault {
		v = runtimeDefault
	}
	checkMatch(f, "seccompProfile", "seccomp", v, string(p.Type), p.LocalhostProfile)
}

// checkMatch compares the value of an annotation with a profile, whose types are
// spelled alike for seccomp and AppArmor.
func checkMatch(in *valid.Field, name, what, v, kind string, local *string) {
	f := in.Child(name)
	path, isLocal := strings.CutPrefix(v, inFile)
	switch kind {
	case string(corev1.SeccompProfileTypeUnconfined):
		isLocal = v == unconfined
	case string(corev1.SeccompProfileTypeRuntimeDefault):
		isLocal = v == runtimeDefault
	case string(corev1.SeccompProfileTypeLocalhost):
		if isLocal && (local == nil || *local != path) {
			f.Forbidden("localhostProfile", what+" profile in annotation and field must match")
		}
	default: // which is said elsewhere
		return
	}
	if !isLocal {
		f.Forbidden("type", what+" type in annotation and field must match")
	}
}

// AppArmorProfile returns what an annotation means; nil if that is nothing.
func AppArmorProfile(v string) *corev1.AppArmorProfile {
	switch path, local := strings.CutPrefix(v, inFile); {
	case v == unconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case v == runtimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case local && path != "":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &path}
	}
	return nil
}
