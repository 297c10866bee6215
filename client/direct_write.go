// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/wire"
)

// errMetadataOnly is a write of an object that is known in part only.
var errMetadataOnly = errors.New("a metadata-only object cannot be created or replaced: use Patch, or a typed or unstructured object")

// Create implements Writer.
func (d *direct) Create(ctx context.Context, obj Object, opts ...WriteOption) error {
	return d.write(ctx, VerbCreate, obj, "", nil, opts)
}

// Update implements Writer.
func (d *direct) Update(ctx context.Context, obj Object, opts ...WriteOption) error {
	return d.write(ctx, VerbUpdate, obj, "", nil, opts)
}

// write creates or replaces obj or, when sub is not empty, that subresource of
// it; body, if not nil, is what is sent and what the answer replaces.
func (d *direct) write(ctx context.Context, verb Verb, obj Object, sub string, body Object, opts []WriteOption) error {
	gvk, err := KindOf(d.scheme, obj)
	if err != nil {
		return fmt.Errorf("%s %T: %w", verb, obj, err)
	}
	o := ResolveWrite(opts)
	c, err := d.begin(ctx, verb, gvk, ObjectKeyFromObject(obj), sub)
	c.DryRun = o.DryRun || d.opts.DryRun
	if body == nil {
		body = o.SubResourceBody
	}
	switch {
	case err != nil:
		return c.end(ctx, err)
	case o.Force:
		return c.end(ctx, ErrForceOwnership)
	case obj.GetName() == "" && (verb == VerbUpdate || sub != ""):
		return c.end(ctx, ErrNoName)
	case sub == "" && body != nil:
		return c.end(ctx, errors.New("WithSubResourceBody is for subresources: use SubResource(name).Update"))
	}
	if body == nil {
		body = obj
	}
	if _, partial := body.(*metav1.PartialObjectMetadata); partial {
		return c.end(ctx, errMetadataOnly)
	}
	bodyKind := gvk
	if body != obj {
		if bodyKind, err = KindOf(d.scheme, body); err != nil {
			return c.end(ctx, err)
		}
	}
	body.GetObjectKind().SetGroupVersionKind(bodyKind)
	c.setWriteQuery(&o)
	method := http.MethodPost
	if verb == VerbUpdate {
		method = http.MethodPut
	}
	return c.end(ctx, c.exchange(ctx, method, "", body, body, bodyKind))
}

func (c *call) setWriteQuery(o *WriteOptions) {
	if c.DryRun {
		c.query.Set("dryRun", metav1.DryRunAll)
	}
	if owner := first(o.FieldOwner, c.d.opts.FieldOwner); owner != "" {
		c.query.Set("fieldManager", owner)
	}
	if validation := first(o.Validation, c.d.opts.FieldValidation); validation != "" {
		c.query.Set("fieldValidation", validation)
	}
}

// Patch implements Writer.
func (d *direct) Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error {
	return d.patch(ctx, obj, "", patch, opts)
}

func (d *direct) patch(ctx context.Context, obj Object, sub string, patch Patch, opts []WriteOption) error {
	gvk, err := KindOf(d.scheme, obj)
	if err != nil {
		return fmt.Errorf("patch %T: %w", obj, err)
	}
	o := ResolveWrite(opts)
	c, err := d.begin(ctx, VerbPatch, gvk, ObjectKeyFromObject(obj), sub)
	c.DryRun = o.DryRun || d.opts.DryRun
	switch {
	case err != nil:
		return c.end(ctx, err)
	case obj.GetName() == "":
		return c.end(ctx, ErrNoName)
	case patch.Type() == types.ApplyPatchType:
		return c.end(ctx, errors.New("an apply patch goes through Apply"))
	case o.Force:
		return c.end(ctx, ErrForceOwnership)
	}
	into, intoKind := obj, gvk
	if o.SubResourceBody != nil {
		into = o.SubResourceBody
		if intoKind, err = KindOf(d.scheme, into); err != nil {
			return c.end(ctx, err)
		}
	}
	data, err := patch.Data(into)
	if err != nil {
		return c.end(ctx, err)
	}
	c.setWriteQuery(&o)
	return c.end(ctx, c.exchange(ctx, http.MethodPatch, string(patch.Type()), data, into, intoKind))
}

// Delete implements Writer.
func (d *direct) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	gvk, err := KindOf(d.scheme, obj)
	if err != nil {
		return fmt.Errorf("delete %T: %w", obj, err)
	}
	o := ResolveDelete(opts)
	c, err := d.begin(ctx, VerbDelete, gvk, ObjectKeyFromObject(obj), "")
	c.DryRun = o.DryRun || d.opts.DryRun
	if err == nil && obj.GetName() == "" {
		err = ErrNoName
	}
	if err != nil {
		return c.end(ctx, err)
	}
	return c.end(ctx, c.delete(ctx, newLike(obj, gvk), &o, gvk))
}

// DeleteAllOf implements Writer.
func (d *direct) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	gvk, err := KindOf(d.scheme, obj)
	if err != nil {
		return fmt.Errorf("delete all of %T: %w", obj, err)
	}
	o := ResolveDeleteAllOf(opts)
	c, err := d.begin(ctx, VerbDeleteAll, gvk, ObjectKey{Namespace: o.Namespace}, "")
	c.DryRun = o.DryRun || d.opts.DryRun
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return c.end(ctx, err)
	}
	setListQuery(c.query, &o.ListOptions)
	listKind := gvk
	listKind.Kind += "List"
	return c.end(ctx, c.delete(ctx, &metav1.PartialObjectMetadataList{}, &o.DeleteOptions, listKind))
}

// delete sends the request. The answer, decoded into answer or a Status, is
// for observers only.
func (c *call) delete(ctx context.Context, answer runtime.Object, o *DeleteOptions, gvk schema.GroupVersionKind) error {
	if err := c.admit(ctx); err != nil {
		return err
	}
	body := metav1.DeleteOptions{
		TypeMeta:           metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		GracePeriodSeconds: o.GracePeriodSeconds, Preconditions: o.Preconditions, PropagationPolicy: o.PropagationPolicy,
	}
	if c.DryRun {
		body.DryRun = []string{metav1.DryRunAll}
	}
	data, err := codec.Encode(codec.JSON, &body)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, http.MethodDelete, codec.JSON, data, answer, gvk)
	if err != nil {
		return err
	}
	if status, ok := wire.DecodeStatus(resp.Body); ok {
		c.Object = status
	} else if codec.Decode(resp.ContentType, resp.Body, answer, gvk) == nil {
		c.Object = answer
	}
	return nil
}
