// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// ApplyBody is what a server-side apply sends for obj: a typed or unstructured
// object, whose kind kindOf returns, or an apply configuration. A typed object goes
// without its zero values: what is zero in Go (and not behind a pointer or in a map
// or list) is not claimed. What only the server writes is left out as well:
// managedFields, creationTimestamp, generation and the deletion fields.
func ApplyBody(obj any, kindOf func(runtime.Object) (schema.GroupVersionKind, error)) (map[string]any, error) {
	var body map[string]any
	switch o := obj.(type) {
	case runtime.Unstructured:
		body = runtime.DeepCopyJSON(o.UnstructuredContent())
	case interface {
		metav1.Object
		runtime.Object
	}:
		gvk, err := kindOf(o)
		if err != nil {
			return nil, err
		}
		if body, err = NonZero(o); err != nil {
			return nil, err
		}
		body["apiVersion"], body["kind"] = gvk.ToAPIVersionAndKind()
	case runtime.ApplyConfiguration:
		data, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &body); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("neither an Object nor an apply configuration")
	}
	if gvk, _ := Identity(body); gvk.Kind == "" || gvk.Version == "" {
		return nil, errors.New("apiVersion and kind are missing: set them")
	}
	if metadata, ok := body["metadata"].(map[string]any); ok {
		for _, name := range []string{"managedFields", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
			delete(metadata, name)
		}
	}
	return body, nil
}

// Identity is the kind and the key of an object in JSON form, empty where the
// object does not name them.
func Identity(body map[string]any) (schema.GroupVersionKind, types.NamespacedName) {
	text := func(m map[string]any, name string) string {
		s, _ := m[name].(string)
		return s
	}
	metadata, _ := body["metadata"].(map[string]any)
	return schema.FromAPIVersionAndKind(text(body, "apiVersion"), text(body, "kind")),
		types.NamespacedName{Namespace: text(metadata, "namespace"), Name: text(metadata, "name")}
}
