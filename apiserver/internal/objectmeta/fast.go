// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package objectmeta

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FastMetadata reports whether the decoded metadata of an object is certainly valid:
// it has only a name, a namespace, labels and annotations in their common form, and
// fields that the server sets. before is the metadata that it replaces, nil for a
// creation. false does not mean invalid: the library then validates the metadata and
// returns the errors.
//
// name validates a name.
//
//steer:fast metadata
func FastMetadata(metadata, before map[string]any, namespaced bool, name func(string) bool) bool {
	if text, ok := metadata["name"].(string); !ok || !name(text) {
		return false
	}
	if namespace, _ := metadata["namespace"].(string); namespaced != (namespace != "") || namespaced && !fastLabel(namespace) {
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
			ok = everyText(value, func(key, text string) bool { return FastQualifiedName(key) && (text == "" || fastName(text)) })
		case "annotations":
			size := 0
			ok = everyText(value, func(key, text string) bool {
				size += len(key) + len(text)
				return FastQualifiedName(key) && size <= 256<<10
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

// FastSubdomain reports whether a text is certainly a DNS subdomain.
func FastSubdomain(text string) bool {
	if text == "" || len(text) > 253 {
		return false
	}
	for {
		dot := 0
		for dot < len(text) && text[dot] != '.' {
			dot++
		}
		if !fastLabel(text[:dot]) {
			return false
		}
		if dot == len(text) {
			return true
		}
		text = text[dot+1:]
	}
}

// fastLabel reports whether a text is certainly a DNS label.
func fastLabel(text string) bool {
	if text == "" || len(text) > 63 || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// FastQualifiedName reports whether a text is certainly a valid label key: a name,
// optionally after a domain and a slash.
func FastQualifiedName(text string) bool {
	for i := range len(text) {
		if text[i] == '/' {
			return FastSubdomain(text[:i]) && fastName(text[i+1:])
		}
	}
	return fastName(text)
}

func fastName(text string) bool {
	if text == "" || len(text) > 63 || !alphanumeric(text[0]) || !alphanumeric(text[len(text)-1]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// FastTypedMetadata is [FastMetadata] for the metadata of a Go type. It also accepts
// owner references, names that are path segments, and generateName prefixes of
// subdomains.
//
//steer:fast metadata
func FastTypedMetadata(meta, before metav1.Object, namespaced bool, name func(string) bool) bool {
	if text := meta.GetName(); text == "" || text == "." || text == ".." || strings.ContainsAny(text, "/%") || !name(text) {
		return false
	}
	if len(meta.GetFinalizers()) > 0 || meta.GetDeletionTimestamp() != nil || meta.GetDeletionGracePeriodSeconds() != nil ||
		meta.GetSelfLink() != "" {
		return false
	}
	if prefix := meta.GetGenerateName(); prefix != "" && !FastSubdomain(strings.TrimSuffix(prefix, "-")) {
		return false
	}
	if namespace := meta.GetNamespace(); namespaced != (namespace != "") || namespaced && !fastLabel(namespace) {
		return false
	}
	for key, text := range meta.GetLabels() {
		if !FastQualifiedName(key) || text != "" && !fastName(text) {
			return false
		}
	}
	size := 0
	for key, text := range meta.GetAnnotations() {
		if size += len(key) + len(text); !FastQualifiedName(key) || size > 256<<10 {
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
