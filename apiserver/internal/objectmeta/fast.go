// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package objectmeta

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/internal/fastname"
)

// FastMetadata reports whether the decoded metadata of an object is certainly valid:
// it has only a name, a namespace, labels and annotations in their common form, and
// fields that the server sets. before is the metadata that it replaces, nil for a
// creation. false does not mean invalid: the library then validates the metadata and
// returns the errors.
//
// name validates a name.
//
//steer:fast names
func FastMetadata(metadata, before map[string]any, namespaced bool, name func(string) bool) bool {
	if text, ok := metadata["name"].(string); !ok || !name(text) {
		return false
	}
	if namespace, _ := metadata["namespace"].(string); namespaced != (namespace != "") || namespaced && !fastname.Label(namespace) {
		return false
	}
	for field, value := range metadata {
		ok := false
		switch field {
		case "name", "namespace", "uid", "resourceVersion", "creationTimestamp":
			_, ok = value.(string)
		case "generation":
			n, isInt := value.(int64)
			was, _ := before["generation"].(int64)
			ok = isInt && n >= 0 && n >= was
		case "labels":
			ok = everyText(value, func(key, text string) bool {
				return fastname.Qualified(key) && (text == "" || fastname.LabelValue(text))
			})
		case "annotations":
			size := 0
			ok = everyText(value, func(key, text string) bool {
				size += len(key) + len(text)
				return fastname.Qualified(key) && size <= 256<<10
			})
		}
		if !ok {
			return false
		}
	}
	if before == nil {
		return true
	}
	for _, field := range []string{"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		was, had := before[field]
		is, has := metadata[field]
		if had != has || is != was {
			return false
		}
	}
	revision, _ := metadata["resourceVersion"].(string)
	return revision != ""
}

func everyText(value any, accept func(key, text string) bool) bool {
	texts, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for key, element := range texts {
		text, ok := element.(string)
		if !ok || !accept(key, text) {
			return false
		}
	}
	return true
}

// FastTypedMetadata is [FastMetadata] for the metadata of a Go type. It also accepts
// owner references, names that are path segments, and generateName prefixes of
// subdomains.
//
//steer:fast names
func FastTypedMetadata(meta, before metav1.Object, namespaced bool, name func(string) bool) bool {
	if text := meta.GetName(); text == "" || text == "." || text == ".." || strings.ContainsAny(text, "/%") || !name(text) {
		return false
	}
	if len(meta.GetFinalizers()) > 0 || meta.GetDeletionTimestamp() != nil || meta.GetDeletionGracePeriodSeconds() != nil ||
		meta.GetSelfLink() != "" {
		return false
	}
	if prefix := meta.GetGenerateName(); prefix != "" && !fastname.Subdomain(strings.TrimSuffix(prefix, "-")) {
		return false
	}
	if namespace := meta.GetNamespace(); namespaced != (namespace != "") || namespaced && !fastname.Label(namespace) {
		return false
	}
	for key, text := range meta.GetLabels() {
		if !fastname.Qualified(key) || text != "" && !fastname.LabelValue(text) {
			return false
		}
	}
	size := 0
	for key, text := range meta.GetAnnotations() {
		if size += len(key) + len(text); !fastname.Qualified(key) || size > 256<<10 {
			return false
		}
	}
	if !fastOwners(meta.GetOwnerReferences()) || meta.GetGeneration() < 0 {
		return false
	}
	if before == nil {
		return true
	}
	was, is := before.GetCreationTimestamp(), meta.GetCreationTimestamp()
	return meta.GetName() == before.GetName() && meta.GetNamespace() == before.GetNamespace() && meta.GetUID() == before.GetUID() && is.Equal(&was) &&
		before.GetDeletionTimestamp() == nil && before.GetDeletionGracePeriodSeconds() == nil && meta.GetGeneration() >= before.GetGeneration() &&
		meta.GetResourceVersion() != ""
}

// fastOwners reports whether the owner references of an object are certainly valid.
func fastOwners(owners []metav1.OwnerReference) bool {
	controllers := 0
	for i := range owners {
		o := &owners[i]
		group, version, grouped := strings.Cut(o.APIVersion, "/")
		if !grouped {
			version = group
		}
		if group == "" || version == "" || strings.Contains(version, "/") || o.Kind == "" || o.Kind == "Event" || o.Name == "" || o.UID == "" {
			return false
		}
		if o.Controller != nil && *o.Controller {
			controllers++
		}
	}
	return controllers <= 1
}
