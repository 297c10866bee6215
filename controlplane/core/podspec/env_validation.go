// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/core/volume"
	"github.com/steer-dev/steer/internal/fastname"
)

func checkEnv(f *valid.Field, env []corev1.EnvVar) {
	for i := range env {
		e := &env[i]
		if fastEnv(e) {
			continue
		}
		at := f.Index(i)
		if at.NonEmpty("name", e.Name) {
			at.Problems("name", e.Name, validation.IsRelaxedEnvVarName(e.Name))
		}
		if e.ValueFrom != nil {
			from := at.Child("valueFrom")
			checkEnvSource(&from, e)
		}
	}
}

// fastEnv reports whether a variable is certainly right: a value, or a key of a
// ConfigMap or a Secret, under a plain name. All else is for the rules.
//
//steer:fast names
func fastEnv(e *corev1.EnvVar) bool {
	for i := range len(e.Name) {
		if c := e.Name[i]; c <= ' ' || c > '~' || c == '=' {
			return false
		}
	}
	from := e.ValueFrom
	switch {
	case e.Name == "":
		return false
	case from == nil:
		return true
	case e.Value != "" || from.FieldRef != nil || from.ResourceFieldRef != nil || from.FileKeyRef != nil:
		return false
	case from.SecretKeyRef != nil && from.ConfigMapKeyRef == nil:
		return fastname.Subdomain(from.SecretKeyRef.Name) && fastname.Key(from.SecretKeyRef.Key)
	case from.ConfigMapKeyRef != nil && from.SecretKeyRef == nil:
		return fastname.Subdomain(from.ConfigMapKeyRef.Name) && fastname.Key(from.ConfigMapKeyRef.Key)
	}
	return false
}

func checkEnvSource(f *valid.Field, e *corev1.EnvVar) {
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		at := f.Child("fieldRef")
		volume.CheckFieldRef(&at, from.FieldRef, envFields())
	}
	if from.ResourceFieldRef != nil {
		sources++
		at := f.Child("resourceFieldRef")
		volume.CheckResourceRef(&at, from.ResourceFieldRef, false)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		at := f.Child("configMapKeyRef")
		checkKeyRef(&at, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
	}
	if from.SecretKeyRef != nil {
		sources++
		at := f.Child("secretKeyRef")
		checkKeyRef(&at, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
	}
	if from.FileKeyRef != nil {
		sources++
		at := f.Child("fileKeyRef")
		checkFileRef(&at, from.FileKeyRef)
	}
	switch {
	case sources == 0:
		f.Invalid(valid.Self, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case e.Value != "":
		f.Invalid(valid.Self, "", "may not be specified when `value` is not empty")
	case sources > 1:
		f.Invalid(valid.Self, "", "may not have more than one field specified at a time")
	}
}

func checkKeyRef(f *valid.Field, name, key string) {
	f.Subdomain("name", name)
	if f.NonEmpty("key", key) && !fastname.Key(key) {
		f.Problems("key", key, validation.IsConfigMapKey(key))
	}
}

func checkFileRef(f *valid.Field, r *corev1.FileKeySelector) {
	if f.NonEmpty("key", r.Key) {
		f.Problems("key", r.Key, validation.IsRelaxedEnvVarName(r.Key))
	}
	if f.NonEmpty("volumeName", r.VolumeName) {
		f.DNSLabel("volumeName", r.VolumeName)
	}
	if f.NonEmpty("path", r.Path) {
		f.NoBacksteps("path", r.Path)
	}
}

// envFields are the fields of a Pod that its environment can show.
func envFields() []string {
	return []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
}

func checkEnvFrom(f *valid.Field, sources []corev1.EnvFromSource) {
	for i := range sources {
		e, at, set := &sources[i], f.Index(i), 0
		if e.Prefix != "" {
			at.Problems("prefix", e.Prefix, validation.IsRelaxedEnvVarName(e.Prefix))
		}
		named := func(in, name string) {
			ref := at.Child(in)
			if set++; ref.NonEmpty("name", name) {
				ref.Problems("name", name, subdomainPrefix(name))
			}
		}
		if e.ConfigMapRef != nil {
			named("configMapRef", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			named("secretRef", e.SecretRef.Name)
		}
		switch {
		case set == 0:
			f.Invalid(valid.Self, "", "must specify one of: `configMapRef` or `secretRef`")
		case set > 1:
			f.Invalid(valid.Self, "", "may not have more than one field specified at a time")
		}
	}
}

// subdomainPrefix checks a name that may end in a dash.
func subdomainPrefix(name string) []string {
	if n := len(name); n > 1 && name[n-1] == '-' {
		name = name[:n-2] + "a"
	}
	return validation.IsDNS1123Subdomain(name)
}
