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

	"github.com/steer-dev/steer/client/codec"
)

// Apply implements Writer.
func (d *direct) Apply(ctx context.Context, obj any, opts ...WriteOption) error {
	return d.apply(ctx, obj, "", opts)
}

func (d *direct) apply(ctx context.Context, obj any, sub string, opts []WriteOption) error {
	body, err := codec.ApplyBody(obj, d.kindOf)
	if err != nil {
		return fmt.Errorf("apply %T: %w", obj, err)
	}
	gvk, key := codec.Identity(body)
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

// kindOf is KindOf with the scheme of the client.
func (d *direct) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	return KindOf(d.scheme, obj)
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
