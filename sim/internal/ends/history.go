// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// revisionAnnotation counts how often the template of a Deployment has changed.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// history returns the objects that workloads keep of templates that they had before: the
// ReplicaSets of a Deployment without replicas, and ControllerRevisions, but for the newest
// of an owner. How many there are says how often a template was written, and nothing of
// where it ended.
func history(lives []Life) map[*unstructured.Unstructured]bool {
	out := map[*unstructured.Unstructured]bool{}
	newest := map[string]*unstructured.Unstructured{} // by uid of the owner
	for _, life := range lives {
		object, owner := life.Object, controllerOf(life.Object)
		if life.Deleted != 0 || owner == "" || !revisioned(object) {
			continue
		}
		before := newest[owner]
		switch {
		case before == nil:
			newest[owner] = object
		case revision(object) < revision(before):
			out[object] = idle(object)
		default:
			newest[owner] = object
			out[before] = idle(before)
		}
	}
	return out
}

func controllerOf(u *unstructured.Unstructured) string {
	for _, ref := range u.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return string(ref.UID)
		}
	}
	return ""
}

func revisioned(u *unstructured.Unstructured) bool {
	group, _, _ := strings.Cut(u.GetAPIVersion(), "/")
	return group == "apps" && (u.GetKind() == "ControllerRevision" || u.GetKind() == "ReplicaSet" && u.GetAnnotations()[revisionAnnotation] != "")
}

func revision(u *unstructured.Unstructured) int64 {
	if u.GetKind() == "ControllerRevision" {
		n, _, _ := unstructured.NestedInt64(u.Object, "revision")
		return n
	}
	n, _ := strconv.ParseInt(u.GetAnnotations()[revisionAnnotation], 10, 64)
	return n
}

// idle reports whether nothing runs of an object.
func idle(u *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec", "replicas"}, {"status", "replicas"}} {
		if n, _, _ := unstructured.NestedInt64(u.Object, path...); n != 0 {
			return false
		}
	}
	return true
}

// counter reports whether a field counts the templates that a workload has had.
func (n *node) counter(path, key string) bool {
	switch n.kind {
	case "Deployment.apps", "ReplicaSet.apps":
		return path == "metadata.annotations."+key && strings.HasPrefix(key, revisionAnnotation)
	case "ControllerRevision.apps":
		return path == "revision"
	}
	return false
}
