// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

func checkEnv(f *valid.Field, env []corev1.EnvVar) {
	for i := range env {
		e, at := &env[i], f.Index(i)
		if at.NonEmpty("name", e.Name) {
			at.Problems("name", e.Name, validation.IsRelaxedEnvVarName(e.Name))
		}
		if e.ValueFrom != nil {
			from := at.Child("valueFrom")
			checkEnvSource(&from, e)
		}
	}
}

func checkEnvSource(f *valid.Field, e *corev1.EnvVar) {
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		at := f.Child("fieldRef")
		checkFieldRef(&at, from.FieldRef, envFields())
	}
	if from.ResourceFieldRef != nil {
		sources++
		at := f.Child("resourceFieldRef")
		checkResourceRef(&at, from.ResourceFieldRef, false)
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
		f.Invalid("", "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case e.Value != "":
		f.Invalid("", "", "may not be specified when `value` is not empty")
	case sources > 1:
		f.Invalid("", "", "may not have more than one field specified at a time")
	}
}

func checkKeyRef(f *valid.Field, name, key string) {
	f.Subdomain("name", name)
	if f.NonEmpty("key", key) {
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

// fileFields are those that its files can show.
func fileFields() []string {
	return []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
}

// downwardFields are all that some version of the API knows.
func downwardField(path string) bool {
	switch path {
	case "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP", "status.hostIPs",
		"status.podIP", "status.podIPs":
		return true
	}
	return false
}

func checkFieldRef(f *valid.Field, r *corev1.ObjectFieldSelector, known []string) {
	if !f.NonEmpty("apiVersion", r.APIVersion) || !f.NonEmpty("fieldPath", r.FieldPath) {
		return
	}
	path, subscript, subscripted := strings.Cut(strings.TrimSuffix(r.FieldPath, "']"), "['")
	subscripted = subscripted && strings.HasSuffix(r.FieldPath, "']")
	if !subscripted {
		path = r.FieldPath
	}
	switch {
	case r.APIVersion != "v1":
		f.Invalid("fieldPath", r.FieldPath, fmt.Sprintf("error converting fieldPath: unsupported pod version: %s", r.APIVersion))
	case subscripted && path == "metadata.annotations":
		f.Qualified("", strings.ToLower(subscript))
	case subscripted && path == "metadata.labels":
		f.Qualified("", subscript)
	case subscripted:
		f.Invalid("fieldPath", r.FieldPath, fmt.Sprintf("error converting fieldPath: field label does not support subscript: %s", r.FieldPath))
	case path == "spec.host":
		if !slices.Contains(known, "spec.nodeName") {
			valid.Supported(f, "fieldPath", "spec.nodeName", known...)
		}
	case !downwardField(path):
		f.Invalid("fieldPath", r.FieldPath, fmt.Sprintf("error converting fieldPath: field label not supported: %s", r.FieldPath))
	default:
		valid.Supported(f, "fieldPath", path, known...)
	}
}

// checkResourceRef has the rules of what a container learns of its resources.
func checkResourceRef(f *valid.Field, r *corev1.ResourceFieldSelector, inVolume bool) {
	huge := strings.HasPrefix(r.Resource, "requests.hugepages-") || strings.HasPrefix(r.Resource, "limits.hugepages-")
	switch {
	case inVolume && r.ContainerName == "":
		f.Required("containerName", "")
	case r.Resource == "":
		f.Required("resource", "")
	case !huge:
		valid.Supported(f, "resource", r.Resource, "limits.cpu", "limits.ephemeral-storage", "limits.memory",
			"requests.cpu", "requests.ephemeral-storage", "requests.memory")
	}
	if r.Divisor.IsZero() {
		return
	}
	divisor := r.Divisor.String()
	bytes := slices.Contains([]string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}, divisor)
	const listed = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "
	switch _, what, _ := strings.Cut(r.Resource, "."); {
	case what == "cpu" && divisor != "1" && divisor != "1m":
		f.Invalid("divisor", r.Resource, "only divisor's values 1m and 1 are supported with the cpu resource")
	case what == "memory" && !bytes:
		f.Invalid("divisor", r.Resource, listed+"memory resource")
	case what == "ephemeral-storage" && !bytes:
		f.Invalid("divisor", r.Resource, listed+"local ephemeral storage resource")
	case huge && !bytes:
		f.Invalid("divisor", r.Resource, listed+"hugepages resource")
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
			f.Invalid("", "", "must specify one of: `configMapRef` or `secretRef`")
		case set > 1:
			f.Invalid("", "", "may not have more than one field specified at a time")
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
