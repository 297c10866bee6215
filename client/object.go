// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a pointer to any Kubernetes object: a Go type with TypeMeta and
// ObjectMeta, *unstructured.Unstructured, or *metav1.PartialObjectMetadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// ObjectList is a pointer to a list of Objects: a Go type with TypeMeta,
// ListMeta and Items, *unstructured.UnstructuredList, or
// *metav1.PartialObjectMetadataList.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// ObjectKey names an object within its kind. Namespace is empty for
// cluster-scoped kinds.
type ObjectKey = types.NamespacedName

// FormatKey writes a key as messages name objects: "namespace/name", and "name" for an object
// in no namespace, of which String makes "/name".
func FormatKey(key ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// ObjectKeyFromObject is the key of obj.
func ObjectKeyFromObject(obj Object) ObjectKey {
	return ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
