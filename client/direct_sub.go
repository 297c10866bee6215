// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import "context"

// Status implements Client.
func (d *direct) Status() StatusWriter { return d.SubResource("status") }

// SubResource implements Client.
func (d *direct) SubResource(name string) SubResourceClient { return directSub{d, name} }

type directSub struct {
	d    *direct
	name string
}

func (s directSub) Get(ctx context.Context, obj, sub Object, _ ...GetOption) error {
	return s.d.get(ctx, ObjectKeyFromObject(obj), obj, s.name, sub)
}

func (s directSub) Create(ctx context.Context, obj, sub Object, opts ...WriteOption) error {
	return s.d.write(ctx, VerbCreate, obj, s.name, sub, opts)
}

func (s directSub) Update(ctx context.Context, obj Object, opts ...WriteOption) error {
	return s.d.write(ctx, VerbUpdate, obj, s.name, nil, opts)
}

func (s directSub) Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error {
	return s.d.patch(ctx, obj, s.name, patch, opts)
}

func (s directSub) Apply(ctx context.Context, obj any, opts ...WriteOption) error {
	return s.d.apply(ctx, obj, s.name, opts)
}
