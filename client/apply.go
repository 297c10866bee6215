// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/client/codec"
)

// Apply implements Writer.
func (d *Direct) Apply(ctx context.Context, obj any, opts ...WriteOption) error {
	return d.apply(ctx, obj, "", opts)
}

func (d *Direct) apply(ctx context.Context, obj any, sub string, opts []WriteOption) error {
	body, err := ApplyBody(d.scheme, obj)
	if err != nil {
		return fmt.Errorf("apply %T: %w", obj, err)
	}
	gvk, key := applyIdentity(body)
	if sub == "" {
		delete(body, "status") // it is written through Status()
	}
	o := ResolveWrite(opts)
	c, err := d.begin(ctx, VerbApply, gvk, key, sub)
	c.DryRun = o.DryRun || d.opts.DryRun
	if err == nil {
		err = checkApply(&o, key, d.opts.FieldOwner)
	}
	if err != nil {
		return c.end(ctx, err)
	}
	if o.Force {
		c.query.Set("force", "true")
	}
	c.setWriteQuery(&o)
	if !c.resource.Namespaced {
		if metadata, ok := body["metadata"].(map[string]any); ok {
			delete(metadata, "namespace")
		}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return c.end(ctx, err)
	}
	into, isObject := obj.(Object)
	if isObject {
		return c.end(ctx, c.exchange(ctx, http.MethodPatch, string(types.ApplyPatchType), data, into, gvk))
	}
	// An apply configuration takes the answer by its JSON names.
	answer := NewUnstructured(gvk)
	err = c.exchange(ctx, http.MethodPatch, string(types.ApplyPatchType), data, answer, gvk)
	if err == nil {
		err = setConfiguration(obj, answer.Object)
	}
	return c.end(ctx, err)
}

func checkApply(o *WriteOptions, key ObjectKey, defaultOwner string) error {
	switch {
	case key.Name == "":
		return ErrNoName
	case o.FieldOwner == "" && defaultOwner == "":
		return ErrNoFieldOwner
	case o.SubResourceBody != nil:
		return errors.New("WithSubResourceBody is for Update and Patch: apply the subresource's own object")
	}
	return nil
}

// ApplyBody is what Apply sends for obj: an Object or an apply configuration.
// A typed object goes without its zero values: what is zero in Go (and not
// behind a pointer or in a map or list) is not claimed. What only the server
// writes is left out as well: managedFields, creationTimestamp, generation and
// the deletion fields.
func ApplyBody(scheme *runtime.Scheme, obj any) (map[string]any, error) {
	var body map[string]any
	switch o := obj.(type) {
	case runtime.Unstructured:
		body = runtime.DeepCopyJSON(o.UnstructuredContent())
	case Object:
		gvk, err := KindOf(scheme, o)
		if err != nil {
			return nil, err
		}
		if body, err = codec.NonZero(o); err != nil {
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
	if gvk, _ := applyIdentity(body); gvk.Kind == "" || gvk.Version == "" {
		return nil, errors.New("apiVersion and kind are missing: set them")
	}
	if metadata, ok := body["metadata"].(map[string]any); ok {
		for _, name := range []string{"managedFields", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
			delete(metadata, name)
		}
	}
	return body, nil
}

func applyIdentity(body map[string]any) (schema.GroupVersionKind, ObjectKey) {
	text := func(m map[string]any, name string) string {
		s, _ := m[name].(string)
		return s
	}
	metadata, _ := body["metadata"].(map[string]any)
	return schema.FromAPIVersionAndKind(text(body, "apiVersion"), text(body, "kind")),
		ObjectKey{Namespace: text(metadata, "namespace"), Name: text(metadata, "name")}
}

// setConfiguration replaces *config by content.
func setConfiguration(config any, content map[string]any) error {
	target := reflect.ValueOf(config)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return nil // passed by value: nothing to fill
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	fresh := reflect.New(target.Type().Elem())
	if err := json.Unmarshal(data, fresh.Interface()); err != nil {
		return fmt.Errorf("decode the answer into %T: %w", config, err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}
