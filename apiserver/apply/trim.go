// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// difference is what remains of one of two objects when all that is equal in
// both is left out. Who owns what after an update follows from the differences
// alone, and a write seldom changes much of an object; a status update, for
// example, keeps the whole spec out of the merge library's sight.
//
// It is an API object with the metadata that the record needs: uid and
// managedFields. Its content shares memory with the object it comes from.
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

// differences returns what differs between two objects of the endpoint's version.
func (b *binding) differences(live, obj Object) (before, after map[string]any, err error) {
	if before, err = b.content(live); err != nil {
		return nil, nil, err
	}
	if after, err = b.content(obj); err != nil {
		return nil, nil, err
	}
	before, after = differences(before, after)
	for _, content := range []map[string]any{before, after} {
		content["apiVersion"], content["kind"] = b.Kind.ToAPIVersionAndKind()
	}
	return before, after, nil
}

// wrap makes an object of the differences of one.
func (b *binding) wrap(content map[string]any, of Object) *difference {
	d := &difference{content: content}
	d.SetGroupVersionKind(b.Kind)
	d.UID, d.ManagedFields = of.GetUID(), of.GetManagedFields()
	return d
}

// content returns the JSON of an object, without copying where it can.
func (b *binding) content(obj Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// differences copies two maps without the members that are equal in both.
func differences(a, b map[string]any) (map[string]any, map[string]any) {
	outA, outB := map[string]any{}, map[string]any{}
	for key, valueB := range b {
		valueA, both := a[key]
		switch {
		case !both:
			outB[key] = valueB
		case !equal(valueA, valueB):
			outA[key], outB[key] = differing(valueA, valueB)
		}
	}
	for key, valueA := range a {
		if _, both := b[key]; !both {
			outA[key] = valueA
		}
	}
	return outA, outB
}

// differing trims two values that are known to differ. Lists stay whole: which
// of their elements belong together, or come twice, is for the library to find.
func differing(a, b any) (any, any) {
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return pair(differences(a, b))
		}
	}
	return a, b
}

func pair(a, b map[string]any) (any, any) { return a, b }

// equal compares JSON values. Objects that share what they have in common are
// compared in the time that their differences take.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() {
			return true
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if len(a) == 0 || &a[0] == &b[0] {
			return true
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		switch b.(type) {
		case map[string]any, []any:
			return false
		}
		return a == b
	}
}
