// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFieldWritesItsPath(t *testing.T) {
	t.Parallel()
	var errs field.ErrorList
	root := Root(&errs)
	spec := root.Child("spec")
	list := spec.Child("containers")
	second := list.Index(1)
	limits := second.Child("limits")
	entry := limits.Key("cpu")
	template := At(field.NewPath("spec", "template"), &errs)
	inTemplate := template.Child("metadata")
	for _, test := range []struct {
		f          *Field
		name, want string
	}{
		{&root, "kind", "kind"},
		{&spec, "", "spec"},
		{&spec, "replicas", "spec.replicas"},
		{&second, "", "spec.containers[1]"},
		{&second, "name", "spec.containers[1].name"},
		{&entry, "", "spec.containers[1].limits[cpu]"},
		{&entry, "x", "spec.containers[1].limits[cpu].x"},
		{&template, "", "spec.template"},
		{&inTemplate, "labels", "spec.template.metadata.labels"},
	} {
		if got := test.f.PathOf(test.name).String(); got != test.want {
			t.Errorf("path is %q, want %q", got, test.want)
		}
	}
	if root.Path() != nil {
		t.Errorf("the path of the object is %q", root.Path())
	}
}

func TestFieldAddsErrorsOfEveryType(t *testing.T) {
	t.Parallel()
	var errs field.ErrorList
	root := Root(&errs)
	f := root.Child("spec")
	f.Required("a", "must be there")
	f.Invalid("b", 1, "is one")
	f.Forbidden("c", "must not be there")
	f.Duplicate("d", "x")
	f.NotFound("e", "y")
	f.TooMany("f", 3, 2)
	f.TooLong("g", 5)
	f.Problems("h", "z", []string{"first", "second"})
	NotSupported(&f, "i", "v", "w")
	compareErrors(t, `spec.a: Required value: must be there
spec.b: Invalid value: 1: is one
spec.c: Forbidden: must not be there
spec.d: Duplicate value: "x"
spec.e: Not found: "y"
spec.f: Too many: 3: must have at most 2 items
spec.g: Too long: may not be more than 5 bytes
spec.h: Invalid value: "z": first
spec.h: Invalid value: "z": second
spec.i: Unsupported value: "v": supported values: "w"`, errs)
	if f.Len() != 10 || root.Len() != 10 || f.Last().Field != "spec.i" {
		t.Errorf("%d and %d errors, the last of %s", f.Len(), root.Len(), f.Last().Field)
	}
}
