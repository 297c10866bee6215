// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package interceptor puts functions in front of the calls of a Client: to
// inject faults in tests, to count, to refuse.
//
//	c := interceptor.New(real, interceptor.Funcs{
//		Update: func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error {
//			return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.New("injected"))
//		},
//	})
//
// A function that wants the real call to happen makes it on next.
package interceptor

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
)

// Funcs are the calls to intercept. A nil function lets its call through. Those
// that begin with SubResource are for every subresource, status included, whose
// name they are given.
type Funcs struct {
	Get         func(ctx context.Context, next client.Client, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	List        func(ctx context.Context, next client.Client, list client.ObjectList, opts ...client.ListOption) error
	Watch       func(ctx context.Context, next client.Client, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error)
	Create      func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error
	Update      func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error
	Patch       func(ctx context.Context, next client.Client, obj client.Object, patch client.Patch, opts ...client.WriteOption) error
	Apply       func(ctx context.Context, next client.Client, obj any, opts ...client.WriteOption) error
	Delete      func(ctx context.Context, next client.Client, obj client.Object, opts ...client.DeleteOption) error
	DeleteAllOf func(ctx context.Context, next client.Client, obj client.Object, opts ...client.DeleteAllOfOption) error

	SubResourceGet    func(ctx context.Context, next client.Client, name string, obj, sub client.Object, opts ...client.GetOption) error
	SubResourceCreate func(ctx context.Context, next client.Client, name string, obj, sub client.Object, opts ...client.WriteOption) error
	SubResourceUpdate func(ctx context.Context, next client.Client, name string, obj client.Object, opts ...client.WriteOption) error
	SubResourcePatch  func(ctx context.Context, next client.Client, name string, obj client.Object, patch client.Patch, opts ...client.WriteOption) error
	SubResourceApply  func(ctx context.Context, next client.Client, name string, obj any, opts ...client.WriteOption) error
}

// New is next with funcs in front of it.
func New(next client.Client, funcs Funcs) client.Client { return &intercepted{next, funcs} }

// intercepted embeds the real client: Scheme and Mapper go straight to it.
type intercepted struct {
	client.Client
	funcs Funcs
}

func (c *intercepted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.funcs.Get != nil {
		return c.funcs.Get(ctx, c.Client, key, obj, opts...)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *intercepted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.funcs.List != nil {
		return c.funcs.List(ctx, c.Client, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}

func (c *intercepted) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if c.funcs.Watch != nil {
		return c.funcs.Watch(ctx, c.Client, list, opts...)
	}
	return c.Client.Watch(ctx, list, opts...)
}

func (c *intercepted) Create(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	if c.funcs.Create != nil {
		return c.funcs.Create(ctx, c.Client, obj, opts...)
	}
	return c.Client.Create(ctx, obj, opts...)
}

func (c *intercepted) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	if c.funcs.Update != nil {
		return c.funcs.Update(ctx, c.Client, obj, opts...)
	}
	return c.Client.Update(ctx, obj, opts...)
}

func (c *intercepted) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	if c.funcs.Patch != nil {
		return c.funcs.Patch(ctx, c.Client, obj, patch, opts...)
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c *intercepted) Apply(ctx context.Context, obj any, opts ...client.WriteOption) error {
	if c.funcs.Apply != nil {
		return c.funcs.Apply(ctx, c.Client, obj, opts...)
	}
	return c.Client.Apply(ctx, obj, opts...)
}

func (c *intercepted) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if c.funcs.Delete != nil {
		return c.funcs.Delete(ctx, c.Client, obj, opts...)
	}
	return c.Client.Delete(ctx, obj, opts...)
}

func (c *intercepted) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if c.funcs.DeleteAllOf != nil {
		return c.funcs.DeleteAllOf(ctx, c.Client, obj, opts...)
	}
	return c.Client.DeleteAllOf(ctx, obj, opts...)
}

func (c *intercepted) Status() client.StatusWriter { return c.SubResource("status") }

func (c *intercepted) SubResource(name string) client.SubResourceClient {
	return &interceptedSub{c, name, c.Client.SubResource(name)}
}

type interceptedSub struct {
	c    *intercepted
	name string
	next client.SubResourceClient
}

func (s *interceptedSub) Get(ctx context.Context, obj, sub client.Object, opts ...client.GetOption) error {
	if fn := s.c.funcs.SubResourceGet; fn != nil {
		return fn(ctx, s.c.Client, s.name, obj, sub, opts...)
	}
	return s.next.Get(ctx, obj, sub, opts...)
}

func (s *interceptedSub) Create(ctx context.Context, obj, sub client.Object, opts ...client.WriteOption) error {
	if fn := s.c.funcs.SubResourceCreate; fn != nil {
		return fn(ctx, s.c.Client, s.name, obj, sub, opts...)
	}
	return s.next.Create(ctx, obj, sub, opts...)
}

func (s *interceptedSub) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	if fn := s.c.funcs.SubResourceUpdate; fn != nil {
		return fn(ctx, s.c.Client, s.name, obj, opts...)
	}
	return s.next.Update(ctx, obj, opts...)
}

func (s *interceptedSub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	if fn := s.c.funcs.SubResourcePatch; fn != nil {
		return fn(ctx, s.c.Client, s.name, obj, patch, opts...)
	}
	return s.next.Patch(ctx, obj, patch, opts...)
}

func (s *interceptedSub) Apply(ctx context.Context, obj any, opts ...client.WriteOption) error {
	if fn := s.c.funcs.SubResourceApply; fn != nil {
		return fn(ctx, s.c.Client, s.name, obj, opts...)
	}
	return s.next.Apply(ctx, obj, opts...)
}
