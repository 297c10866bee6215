// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// fileFields are those that its files can show.
func fileFields() []string {
	return []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
}

// downwardField reports whether a field is one that some version of the API knows.
func downwardField(path string) bool {
	switch path {
	case "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP", "status.hostIPs",
		"status.podIP", "status.podIPs":
		return true
	}
	return false
}

// CheckFieldRef has the rules of what a container learns of its Pod; known are
// the fields that it can learn there.
func CheckFieldRef(f *valid.Field, r *corev1.ObjectFieldSelector, known []string) {
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
		f.Qualified(valid.Self, strings.ToLower(subscript))
	case subscripted && path == "metadata.labels":
		f.Qualified(valid.Self, subscript)
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

// CheckResourceRef has the rules of what a container learns of its resources.
func CheckResourceRef(f *valid.Field, r *corev1.ResourceFieldSelector, inVolume bool) {
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
