// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package interop lends an operator on Steer to libraries that ask for the types
// of controller-runtime and client-go. It is a module of its own, so that an
// operator without such a library does not link them.
//
//	c, err := interop.Client(m.Client(), cfg)
//	events := interop.EventRecorder(m.Base().Events, "crontab")
//
// Reads and writes are those of the Steer client behind: from its cache, with
// read-your-writes, in the flight recorder, and fenced when leadership is lost.
package interop

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	theirs "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/steer-dev/steer/client"
)

// ErrUnsupported is wrapped by calls with options that a Steer client does not have.
var ErrUnsupported = errors.New("interop: not supported")

// Client returns c as controller-runtime's client.Client. cfg is of the same API
// server; its RESTMapper is made of it.
func Client(c client.Client, cfg *rest.Config) (theirs.Client, error) {
	web, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("interop: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, web)
	if err != nil {
		return nil, fmt.Errorf("interop: %w", err)
	}
	return &adapter{c, mapper}, nil
}

type adapter struct {
	client client.Client
	mapper meta.RESTMapper
}

// Get implements client.Reader of controller-runtime, as List does.
func (a *adapter) Get(ctx context.Context, key types.NamespacedName, obj theirs.Object, opts ...theirs.GetOption) error {
	var o theirs.GetOptions
	o.ApplyOptions(opts)
	if o.Raw != nil && o.Raw.ResourceVersion != "" {
		return fmt.Errorf("%w: GetOptions.Raw.ResourceVersion", ErrUnsupported)
	}
	return a.client.Get(ctx, key, obj)
}

// List implements client.Reader.
func (a *adapter) List(ctx context.Context, list theirs.ObjectList, opts ...theirs.ListOption) error {
	var o theirs.ListOptions
	o.ApplyOptions(opts)
	if o.Raw != nil && (o.Raw.ResourceVersion != "" || o.Raw.ResourceVersionMatch != "") {
		return fmt.Errorf("%w: ListOptions.Raw.ResourceVersion", ErrUnsupported)
	}
	return a.client.List(ctx, list, listOptions(&o))
}

// Create implements client.Writer of controller-runtime, as the next ones do.
func (a *adapter) Create(ctx context.Context, obj theirs.Object, opts ...theirs.CreateOption) error {
	var o theirs.CreateOptions
	o.ApplyOptions(opts)
	return a.client.Create(ctx, obj, writeOptions(o.DryRun, o.FieldManager, o.FieldValidation, nil))
}

// Update implements client.Writer.
func (a *adapter) Update(ctx context.Context, obj theirs.Object, opts ...theirs.UpdateOption) error {
	var o theirs.UpdateOptions
	o.ApplyOptions(opts)
	return a.client.Update(ctx, obj, writeOptions(o.DryRun, o.FieldManager, o.FieldValidation, nil))
}

// Patch implements client.Writer.
func (a *adapter) Patch(ctx context.Context, obj theirs.Object, patch theirs.Patch, opts ...theirs.PatchOption) error {
	var o theirs.PatchOptions
	o.ApplyOptions(opts)
	return a.client.Patch(ctx, obj, patched{patch}, writeOptions(o.DryRun, o.FieldManager, o.FieldValidation, o.Force))
}

// Apply implements client.Writer.
func (a *adapter) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...theirs.ApplyOption) error {
	var o theirs.ApplyOptions
	o.ApplyOptions(opts)
	return a.client.Apply(ctx, obj, writeOptions(o.DryRun, o.FieldManager, "", o.Force))
}

// Delete implements client.Writer.
func (a *adapter) Delete(ctx context.Context, obj theirs.Object, opts ...theirs.DeleteOption) error {
	var o theirs.DeleteOptions
	o.ApplyOptions(opts)
	return a.client.Delete(ctx, obj, deleteOptions(&o))
}

// DeleteAllOf implements client.Writer.
func (a *adapter) DeleteAllOf(ctx context.Context, obj theirs.Object, opts ...theirs.DeleteAllOfOption) error {
	var o theirs.DeleteAllOfOptions
	o.ApplyOptions(opts)
	return a.client.DeleteAllOf(ctx, obj, listOptions(&o.ListOptions), deleteOptions(&o.DeleteOptions))
}

// Scheme implements client.Client of controller-runtime.
func (a *adapter) Scheme() *runtime.Scheme { return a.client.Scheme() }

// RESTMapper implements client.Client.
func (a *adapter) RESTMapper() meta.RESTMapper { return a.mapper }

// GroupVersionKindFor implements client.Client.
func (a *adapter) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, a.client.Scheme())
}

// IsObjectNamespaced implements client.Client.
func (a *adapter) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, a.client.Scheme(), a.mapper)
}

// Status implements client.StatusClient.
func (a *adapter) Status() theirs.SubResourceWriter { return a.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (a *adapter) SubResource(name string) theirs.SubResourceClient {
	return &subresource{a.client.SubResource(name)}
}

type subresource struct{ client client.SubResourceClient }

// Get implements client.SubResourceReader.
func (s *subresource) Get(ctx context.Context, obj, sub theirs.Object, _ ...theirs.SubResourceGetOption) error {
	return s.client.Get(ctx, obj, sub)
}

// Create implements client.SubResourceWriter, as the next ones do.
func (s *subresource) Create(ctx context.Context, obj, sub theirs.Object, opts ...theirs.SubResourceCreateOption) error {
	var o theirs.SubResourceCreateOptions
	o.ApplyOptions(opts)
	return s.client.Create(ctx, obj, sub, writeOptions(o.DryRun, o.FieldManager, o.FieldValidation, nil))
}

// Update implements client.SubResourceWriter.
func (s *subresource) Update(ctx context.Context, obj theirs.Object, opts ...theirs.SubResourceUpdateOption) error {
	var o theirs.SubResourceUpdateOptions
	o.ApplyOptions(opts)
	return s.client.Update(ctx, obj, withBody(writeOptions(o.DryRun, o.FieldManager, o.FieldValidation, nil), o.SubResourceBody))
}

// Patch implements client.SubResourceWriter.
func (s *subresource) Patch(ctx context.Context, obj theirs.Object, patch theirs.Patch, opts ...theirs.SubResourcePatchOption) error {
	var o theirs.SubResourcePatchOptions
	o.ApplyOptions(opts)
	return s.client.Patch(ctx, obj, patched{patch}, withBody(writeOptions(o.DryRun, o.FieldManager, o.FieldValidation, o.Force), o.SubResourceBody))
}

// Apply implements client.SubResourceWriter.
func (s *subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...theirs.SubResourceApplyOption) error {
	var o theirs.SubResourceApplyOptions
	o.ApplyOpts(opts)
	if o.SubResourceBody != nil {
		obj = o.SubResourceBody
	}
	return s.client.Apply(ctx, obj, writeOptions(o.DryRun, o.FieldManager, "", o.Force))
}

// patched is a patch of controller-runtime.
type patched struct{ theirs.Patch }

// Data implements client.Patch.
func (p patched) Data(obj client.Object) ([]byte, error) { return p.Patch.Data(obj) }

func listOptions(o *theirs.ListOptions) *client.ListOptions {
	return &client.ListOptions{
		Namespace: o.Namespace, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, Limit: o.Limit, Continue: o.Continue,
	}
}

func writeOptions(dryRun []string, owner, validation string, force *bool) *client.WriteOptions {
	return &client.WriteOptions{DryRun: len(dryRun) > 0, FieldOwner: owner, Validation: validation, Force: force != nil && *force}
}

func withBody(o *client.WriteOptions, body theirs.Object) *client.WriteOptions {
	if body != nil {
		o.SubResourceBody = body
	}
	return o
}

func deleteOptions(o *theirs.DeleteOptions) *client.DeleteOptions {
	return &client.DeleteOptions{
		DryRun: len(o.DryRun) > 0, GracePeriodSeconds: o.GracePeriodSeconds, Preconditions: o.Preconditions, PropagationPolicy: o.PropagationPolicy,
	}
}
