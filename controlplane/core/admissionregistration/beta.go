// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/api/admissionregistration/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// BetaVersion is the version of [Beta].
const BetaVersion = v1.GroupName + "/v1beta1"

// Beta returns the kinds that have the version v1beta1 as well, with it, in the place of those
// of [Resources]: MutatingAdmissionPolicies and their bindings. Both versions have the same fields.
func Beta() []*resource.Resource {
	compile := new(rules)
	return []*resource.Resource{
		beta[v1beta1.MutatingAdmissionPolicy](compile.mutatingPolicies()),
		beta[v1beta1.MutatingAdmissionPolicyBinding](mutatingBindings()),
	}
}

// beta returns a kind with v1beta1 beside v1. The rules of v1 hold for both.
func beta[Old, New any, OldP kind.Object[Old], NewP kind.Object[New]](stable kind.Definition[New, NewP]) *resource.Resource {
	convert := func(obj resource.Object, version string) (resource.Object, error) {
		if version == "v1" {
			return into(obj, NewP(new(New)), version)
		}
		return into(obj, OldP(new(Old)), version)
	}
	asNew := func(obj OldP) NewP {
		if obj == nil {
			return nil
		}
		out, err := into(obj, NewP(new(New)), "v1")
		if err != nil {
			panic(err) // both versions have the same fields
		}
		return out
	}
	stable.Family, stable.Others, stable.Convert = kind.NewFamily(), []string{"v1beta1"}, convert
	served := stable.Resource()
	name := served.Kind
	old := kind.Definition[Old, OldP]{
		Group: stable.Group, Version: "v1beta1", Plural: stable.Plural, Cluster: stable.Cluster, Categories: stable.Categories, Generations: stable.Generations,
		Deprecation: fmt.Sprintf("%s %s is deprecated in v1.37+, unavailable in v1.40+; use %s/v1 %s", BetaVersion, name, v1.GroupName, name),
		Family:      stable.Family, Others: []string{"v1"}, Convert: convert,
		Metadata: stable.Metadata,
		Defaults: func(obj OldP) {
			full := asNew(obj)
			stable.Defaults(full)
			if _, err := into(full, obj, "v1beta1"); err != nil {
				panic(err) // both versions have the same fields
			}
		},
		Validate: func(obj, before OldP) field.ErrorList { return stable.Validate(asNew(obj), asNew(before)) },
		Warnings: func(obj, before OldP) []string { return stable.Warnings(asNew(obj), asNew(before)) },
		Columns:  stable.Columns,
		Row:      func(obj OldP) []any { return stable.Row(asNew(obj)) },
	}
	return kind.Joined(served, old.Resource(), convert)
}

// into writes an object as one of another version of its kind.
func into[T resource.Object](obj resource.Object, out T, version string) (T, error) {
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return out, fmt.Errorf("convert to %s/%s: %w", v1.GroupName, version, err)
	}
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: v1.GroupName, Version: version, Kind: kind})
	return out, nil
}

// asStable returns objects of v1beta1 as those of v1, and others as they are.
func asStable(obj, old resource.Object) (resource.Object, resource.Object, error) {
	out := [2]resource.Object{obj, old}
	for i, o := range out {
		var err error
		switch o := o.(type) {
		case *v1beta1.MutatingAdmissionPolicy:
			out[i], err = into(o, new(v1.MutatingAdmissionPolicy), "v1")
		case *v1beta1.MutatingAdmissionPolicyBinding:
			out[i], err = into(o, new(v1.MutatingAdmissionPolicyBinding), "v1")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return out[0], out[1], nil
}
