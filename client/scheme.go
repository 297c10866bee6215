// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewScheme is a scheme that holds exactly what the given functions add, which
// are the AddToScheme functions of API packages.
func NewScheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, fn := range add {
		if err := fn(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	return scheme, nil
}

// KindOf is the kind of obj. Unstructured and metadata-only objects say it
// themselves; for Go types the scheme knows. The kind of a list is that of the
// list, not of its items.
func KindOf(scheme *runtime.Scheme, obj runtime.Object) (schema.GroupVersionKind, error) {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		gvk := obj.GetObjectKind().GroupVersionKind()
		if gvk.Kind == "" || gvk.Version == "" {
			return gvk, fmt.Errorf("a %T must say its apiVersion and kind: call SetGroupVersionKind first", obj)
		}
		return gvk, nil
	}
	gvks, _, err := scheme.ObjectKinds(obj)
	switch {
	case runtime.IsNotRegisteredError(err):
		return schema.GroupVersionKind{}, unregisteredType(obj)
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("kind of %T: %w", obj, err)
	case len(gvks) == 1:
		return gvks[0], nil
	}
	// One Go type under several kinds: only the object itself can tell.
	said := obj.GetObjectKind().GroupVersionKind()
	for _, gvk := range gvks {
		if gvk == said {
			return gvk, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("kind of %T: registered as %v: set apiVersion and kind to say which one is meant", obj, gvks)
}

// itemKindOf is the kind of the items of list.
func itemKindOf(scheme *runtime.Scheme, list runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := KindOf(scheme, list)
	if err != nil {
		return gvk, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, nil
}

// newObject is an empty object of the kind: the scheme's Go type, or an error
// that names the missing AddToScheme call.
func newObject(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (Object, error) {
	obj, err := scheme.New(gvk)
	if err != nil {
		return nil, &UnregisteredError{GVK: gvk, AddToScheme: addToScheme("", gvk)}
	}
	o, ok := obj.(Object)
	if !ok {
		return nil, fmt.Errorf("%s: %T has no object metadata", gvk, obj)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// NewUnstructured is an empty unstructured object of the kind.
func NewUnstructured(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// NewMetadata is an empty metadata-only object of the kind.
func NewMetadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}

// IsUnregistered reports whether err is or wraps an UnregisteredError.
func IsUnregistered(err error) bool {
	var e *UnregisteredError
	return errors.As(err, &e)
}

func unregisteredType(obj runtime.Object) error {
	t := reflect.TypeOf(obj)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return &UnregisteredError{GoType: "*" + t.String(), AddToScheme: addToScheme(t.PkgPath(), schema.GroupVersionKind{})}
}

var versionName = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// addToScheme spells the missing call the way operators import API packages:
// the last two path elements, joined.
func addToScheme(pkgPath string, gvk schema.GroupVersionKind) string {
	if pkgPath == "" {
		group, _, _ := strings.Cut(gvk.Group, ".")
		if group == "" {
			group = "core"
		}
		pkgPath = "k8s.io/api/" + group + "/" + gvk.Version
		if strings.Contains(gvk.Group, ".") && !strings.HasSuffix(gvk.Group, ".k8s.io") {
			return fmt.Sprintf("the AddToScheme of the package with the Go types of %s, or read it as *unstructured.Unstructured", gvk.GroupVersion())
		}
	}
	name := path.Base(pkgPath)
	if versionName.MatchString(name) {
		name = strings.ReplaceAll(path.Base(path.Dir(pkgPath)), "-", "") + name
	}
	return fmt.Sprintf("%s.AddToScheme // import %s %q", name, name, pkgPath)
}
