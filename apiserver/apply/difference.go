// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// difference is one of two objects without the fields that are equal in both. Ownership
// after an update depends on the differences alone, and most writes change few fields;
// a status update, for example, keeps the whole spec out of the merge library.
//
// It is an API object with the metadata that the library needs: uid and managedFields.
// Its content shares memory with the object.
type difference struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	content map[string]any
}

// DeepCopyObject implements runtime.Object.
func (d *difference) DeepCopyObject() runtime.Object {
	out := &difference{TypeMeta: d.TypeMeta, content: runtime.DeepCopyJSON(d.content)}
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// differences returns the differences between two objects in the endpoint's version.
func (b *binding) differences(live, obj Object) (before, after map[string]any, err error) {
	old, isDoc := live.(*doc.Doc)
	wished, alsoDoc := obj.(*doc.Doc)
	if isDoc && alsoDoc {
		before, after = doc.Differences(old, wished)
	} else {
		if before, err = contentOf(live); err != nil {
			return nil, nil, err
		}
		if after, err = contentOf(obj); err != nil {
			return nil, nil, err
		}
		before, after = wire.Differences(before, after)
	}
	for _, content := range []map[string]any{before, after} {
		content["apiVersion"], content["kind"] = b.Kind.ToAPIVersionAndKind()
	}
	return before, after, nil
}

// wrap returns the differences of an object as an API object.
func (b *binding) wrap(content map[string]any, of Object) *difference {
	d := &difference{content: content}
	d.SetGroupVersionKind(b.Kind)
	d.UID, d.ManagedFields = of.GetUID(), of.GetManagedFields()
	return d
}

// decoded returns an object as the library takes it: a copy, if it has no Go type.
func decoded(obj Object) Object {
	if d, ok := obj.(*doc.Doc); ok {
		return &unstructured.Unstructured{Object: d.Content()}
	}
	return obj
}

// contentOf returns an object as decoded JSON.
func contentOf(obj Object) (map[string]any, error) {
	switch o := obj.(type) {
	case *doc.Doc:
		return o.Content(), nil
	case *unstructured.Unstructured:
		return o.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
