// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/patch"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// patch applies the patch of a response. It reports whether the object has changed.
func (m *mutation) patch(ctx context.Context, h *hook, as match.Invocation, r *admissionv1.AdmissionResponse) (changed bool, err error) {
	if len(r.Patch) == 0 {
		return false, nil
	}
	operations, err := decodePatch(r.Patch)
	if err != nil {
		return false, &callError{h.name, fmt.Errorf("received undecodable patch in webhook response: %w", err), codeOf(err)}
	}
	if len(operations) == 0 {
		return false, nil
	}
	form, err := m.q.As(ctx, as.Kind)
	if err != nil {
		return false, err
	}
	if form.Object == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.name))
	}
	if *r.PatchType != admissionv1.PatchTypeJSONPatch {
		return false, &callError{h.name, fmt.Errorf("unsupported patch type %q", *r.PatchType), http.StatusBadRequest}
	}
	before, ok := form.Object.(resource.Object)
	if !ok {
		if changed, err = m.patchConnection(form.Object, r.Patch); err == nil {
			m.notePatch(ctx, h, operations)
		}
		return changed, err
	}
	patched, err := apply(r.Patch, m.form.object)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	obj, err := decodePatched(before, patched)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	switch got := obj.GetObjectKind().GroupVersionKind(); {
	case got.Kind == "" || got.Version == "":
		obj.GetObjectKind().SetGroupVersionKind(as.Kind)
	case got.GroupVersion() != as.Kind.GroupVersion() && custom(obj):
		return false, fmt.Errorf("%s is unstructured and is not suitable for converting to %q", got, as.Kind.GroupVersion())
	case got != as.Kind && !custom(obj): // the kind of custom resources is validated
		return false, apierrors.NewInternalError(fmt.Errorf("no kind %q is registered for version %q in scheme %q", got.Kind, got.GroupVersion(), webhookclient.SchemeName))
	}
	changed = !resource.Equal(before, obj)
	m.notePatch(ctx, h, operations)
	m.form = nil
	return changed, m.q.Replace(ctx, obj, as.Kind)
}

func custom(obj resource.Object) bool {
	_, ok := obj.(*resource.Doc)
	return ok
}

// decodePatch returns the operations of a JSON patch. Its errors are those of
// kube-apiserver.
func decodePatch(data []byte) ([]map[string]json.RawMessage, error) {
	var operations []map[string]json.RawMessage
	err := json.Unmarshal(data, &operations)
	var of *json.UnmarshalTypeError
	if errors.As(err, &of) {
		name := "jsonpatch.Operation"
		if of.Type.Kind() == reflect.Slice {
			name = "jsonpatch.Patch"
		}
		return nil, fmt.Errorf("json: cannot unmarshal %s into Go value of type %s", of.Value, name)
	}
	return operations, err
}

// apply applies a JSON patch to an encoded object. Its errors are those of the patch.
func apply(operations, object []byte) (*resource.Doc, error) {
	p, err := patch.Parse(types.JSONPatchType, operations, patch.Options{})
	if err != nil {
		return nil, err
	}
	d, err := resource.ParseDoc(object)
	if err != nil {
		return nil, err
	}
	return p.Apply(d)
}

// decodePatched returns a patched object of the same Go type as the one before.
func decodePatched(before resource.Object, patched *resource.Doc) (resource.Object, error) {
	if custom(before) {
		return patched, nil
	}
	obj := reflect.New(reflect.TypeOf(before).Elem()).Interface().(resource.Object)
	return obj, decodeInto(patched, obj)
}

func decodeInto(patched *resource.Doc, obj runtime.Object) error {
	encoded, err := patched.MarshalJSON()
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(encoded, obj)
}

// patchConnection changes the options of a connection, which have no metadata.
func (m *mutation) patchConnection(options runtime.Object, operations []byte) (bool, error) {
	patched, err := apply(operations, m.form.object)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	next := reflect.New(reflect.TypeOf(options).Elem()).Interface().(runtime.Object)
	if err := decodeInto(patched, next); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	changed := !equality.Semantic.DeepEqual(options, next)
	m.form = nil
	m.q.ReplaceOptions(next)
	return changed, nil
}
