// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Patched turns a patched object into one of the version's Go type and returns its unknown and
// duplicate fields. The texts of errors are those of a strategic merge patch, or of others.
func (d *Decoder) Patched(patched *resource.Doc, strategic bool) (resource.Object, []error, error) {
	obj := d.Version.New()
	raw, err := patched.MarshalJSON()
	if err != nil {
		return nil, nil, err
	}
	sameKind := patched.GetKind() == d.Kind.Kind && patched.GetAPIVersion() == d.Kind.GroupVersion().String()
	if sameKind && typed.DecodeFast(raw, obj) {
		return obj, nil, nil
	}
	obj = d.Version.New()
	if strategic {
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(patched.Content(), obj, true)
		if strict, ok := runtime.AsStrictDecodingError(err); ok {
			return obj, strict.Errors(), nil
		}
		return obj, nil, err
	}
	internal := false
	if !sameKind {
		if internal, err = d.patchedKind(raw); err != nil {
			return nil, nil, err
		}
	}
	if internal {
		return obj, unknownFields(patched.Content()), nil
	}
	findings, err := kjson.UnmarshalStrict(raw, obj)
	return obj, findings, err
}

// unknownFields returns the strict decoding errors for a document that is decoded as
// another kind, which has none of its fields.
func unknownFields(doc map[string]any) []error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if name != "kind" && name != "apiVersion" {
			out = append(out, fmt.Errorf("unknown field %q", name))
		}
	}
	return out
}

// patchedKind returns an error if a patch changed the kind of a document. kube-apiserver
// decodes a document without apiVersion as its internal version, whose fields have
// other names; internal reports this case.
func (d *Decoder) patchedKind(data []byte) (internal bool, err error) {
	gvk, err := kindOf(data, nil, errPatchedKind)
	if err != nil {
		return false, err
	}
	if internal = gvk.Group == "" && gvk.Version == ""; internal {
		gvk.Group, gvk.Version = d.Kind.Group, d.Kind.Version
	}
	gvk = withDefaults(gvk, d.Kind)
	if gvk == d.Kind {
		return internal, nil
	}
	if internal {
		if d.Known != nil {
			if _, known := d.Known(gvk); known {
				return false, d.inconvertible(schemePackage(gvk.Group), gvk)
			}
		}
		gvk.Version = runtime.APIVersionInternal
		return false, runtime.NewNotRegisteredErrForKind(schemeName, gvk)
	}
	if err := d.mismatch(gvk); !apierrors.IsBadRequest(err) { // another served version of the same objects
		return false, err
	}
	return false, nil
}

// errPatchedKind makes kindOf read the kind from the data.
var errPatchedKind = errors.New("patched")
