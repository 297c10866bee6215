// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
	if before, err = b.content(live); err != nil {
		return nil, nil, err
	}
	if after, err = b.content(obj); err != nil {
		return nil, nil, err
	}
	before, after = wire.Differences(before, after)
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

// decoded returns an object without raw members; it is the same or shares its metadata.
func decoded(obj Object) Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: wire.DecodedMembers(u.Object)}
	}
	return obj
}

// content returns the JSON of an object without raw members, copying as little as
// possible.
func (b *binding) content(obj Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return wire.DecodedMembers(u.Object), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
