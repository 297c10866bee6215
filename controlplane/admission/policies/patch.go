// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	celmutation "k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/patch"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
)

// patched returns the object of a write after a mutation, of the same Go type and in the
// same version; nil if it stays as it is. Nothing of the value or of the object before is
// part of it.
func (m *changes) patched(mutation *mutation, value ref.Val, form *match.Form) (runtime.Object, error) {
	if mutation.kind == v1.PatchTypeJSONPatch {
		return applyJSONPatch(value, form.Object)
	}
	return m.applyConfiguration(value, form)
}

// applyJSONPatch applies the operations of a list of JSONPatch objects. A test that fails
// leaves the object as it is.
func applyJSONPatch(value ref.Val, before runtime.Object) (runtime.Object, error) {
	operations, err := operationsOf(value)
	if err != nil {
		return nil, err
	}
	p, err := patch.Parse(apitypes.JSONPatchType, operations, patch.Options{})
	if err != nil {
		return nil, fmt.Errorf("JSON Patch: %s", err.Error())
	}
	old, err := match.Content(before)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	next, err := p.Apply(resource.NewDoc(old))
	switch {
	case errors.Is(err, patch.ErrTestFailed):
		return nil, nil // the object stays as it is
	case err != nil:
		return nil, fmt.Errorf("JSON Patch: %s", err.Error()) // no API status: the failure policy decides
	}
	out, err := likewise(next, before)
	if err == nil && out.GetObjectKind().GroupVersionKind() != before.GetObjectKind().GroupVersionKind() {
		err = fmt.Errorf("a patch may not change apiVersion and kind from %v to %v",
			before.GetObjectKind().GroupVersionKind(), out.GetObjectKind().GroupVersionKind())
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return out, nil
}

// operationsOf encodes a list of JSONPatch objects.
func operationsOf(value ref.Val) ([]byte, error) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, errors.New("type mismatch: JSONPatchType.expression should evaluate to array")
	}
	out := []map[string]any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		native, err := it.Next().ConvertToNative(reflect.TypeFor[*celmutation.JSONPatchVal]())
		if err != nil {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: %w", err)
		}
		op, ok := native.(*celmutation.JSONPatchVal)
		if !ok {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of %T", native)
		}
		member := map[string]any{"op": op.Op, "path": op.Path}
		if op.From != "" {
			member["from"] = op.From
		}
		if op.Val != nil {
			if member["value"], err = jsonOf(op.Val); err != nil {
				return nil, err
			}
		}
		out = append(out, member)
	}
	return json.Marshal(out)
}

// jsonOf returns a value as JSON.
func jsonOf(value ref.Val) (json.RawMessage, error) {
	if o, ok := value.(*dynamic.ObjectVal); ok {
		if err := o.CheckTypeNamesMatchFieldPathNames(); err != nil {
			return nil, fmt.Errorf("type mismatch: %w", err)
		}
	}
	const unfit = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w"
	native, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf(unfit, err)
	}
	out, err := json.Marshal(native)
	if err != nil {
		return nil, fmt.Errorf(unfit, err)
	}
	return out, nil
}

// likewise returns the content of an object, maps or a Doc, as a new one of the Go type of
// another. Unknown fields of typed objects are errors.
func likewise(content any, like runtime.Object) (runtime.Object, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if _, ok := like.(*resource.Doc); ok {
		return resource.ParseDoc(encoded)
	}
	out := reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
	strict, err := kjson.UnmarshalStrict(encoded, out)
	if err == nil && len(strict) > 0 {
		err = runtime.NewStrictDecodingError(strict)
	}
	return out, err
}

// applyConfiguration merges an Object into the object of the write, by its type.
func (m *changes) applyConfiguration(value ref.Val, form *match.Form) (runtime.Object, error) {
	o, ok := value.(*dynamic.ObjectVal)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", value.Type())
	}
	if err := o.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	applied, ok := o.Value().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid return type: %T", o.Value())
	}
	configuration := &unstructured.Unstructured{Object: applied}
	configuration.SetGroupVersionKind(form.Kind)
	merged, err := merge(m.p.converters.of(m.w.Request, form), form.Object, configuration)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	return likewise(merged, form.Object)
}
