// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
)

// Each puts one function in front of every call: call says which verb, kind and
// object, do makes it. What fn returns is what the caller gets, so a function
// that has not called do says that the call failed before it was sent, and one
// that drops do's success says that the answer was lost:
//
//	interceptor.Each(func(ctx context.Context, call client.Call, do func() error) error {
//		if call.Verb == client.VerbPatch && call.GVK.Kind == "Job" {
//			return apierrors.NewInternalError(errors.New("injected"))
//		}
//		return do()
//	})
//
// Of call only the fields that are known before the call are set. The kind is
// empty where the scheme does not know the object.
func Each(fn func(ctx context.Context, call client.Call, do func() error) error) Funcs {
	one := func(ctx context.Context, c client.Client, verb client.Verb, sub string, obj client.Object, do func() error) error {
		return fn(ctx, client.Call{Verb: verb, GVK: kindOf(c, obj), Key: client.ObjectKeyFromObject(obj), SubResource: sub}, do)
	}
	applied := func(ctx context.Context, c client.Client, sub string, obj any, do func() error) error {
		if o, ok := obj.(client.Object); ok {
			return one(ctx, c, client.VerbApply, sub, o, do)
		}
		return fn(ctx, client.Call{Verb: client.VerbApply, SubResource: sub}, do)
	}
	return Funcs{
		Get: func(ctx context.Context, c client.Client, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			call := client.Call{Verb: client.VerbGet, GVK: kindOf(c, obj), Key: key}
			return fn(ctx, call, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.Client, list client.ObjectList, opts ...client.ListOption) error {
			return fn(ctx, listed(c, client.VerbList, list), func() error { return c.List(ctx, list, opts...) })
		},
		Watch: func(ctx context.Context, c client.Client, list client.ObjectList, opts ...client.ListOption) (w watch.Interface, err error) {
			err = fn(ctx, listed(c, client.VerbWatch, list), func() error {
				w, err = c.Watch(ctx, list, opts...)
				return err
			})
			if err != nil && w != nil {
				w.Stop()
				w = nil
			}
			return w, err
		},
		Create: func(ctx context.Context, c client.Client, obj client.Object, opts ...client.WriteOption) error {
			return one(ctx, c, client.VerbCreate, "", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.Client, obj client.Object, opts ...client.WriteOption) error {
			return one(ctx, c, client.VerbUpdate, "", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.Client, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
			return one(ctx, c, client.VerbPatch, "", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.Client, obj any, opts ...client.WriteOption) error {
			return applied(ctx, c, "", obj, func() error { return c.Apply(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.Client, obj client.Object, opts ...client.DeleteOption) error {
			return one(ctx, c, client.VerbDelete, "", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.Client, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return one(ctx, c, client.VerbDeleteAll, "", obj, func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		SubResourceGet: func(ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.GetOption) error {
			return one(ctx, c, client.VerbGet, name, obj, func() error { return c.SubResource(name).Get(ctx, obj, sub, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.WriteOption) error {
			return one(ctx, c, client.VerbCreate, name, obj, func() error { return c.SubResource(name).Create(ctx, obj, sub, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.WriteOption) error {
			return one(ctx, c, client.VerbUpdate, name, obj, func() error { return c.SubResource(name).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
			return one(ctx, c, client.VerbPatch, name, obj, func() error { return c.SubResource(name).Patch(ctx, obj, patch, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, name string, obj any, opts ...client.WriteOption) error {
			return applied(ctx, c, name, obj, func() error { return c.SubResource(name).Apply(ctx, obj, opts...) })
		},
	}
}

func listed(c client.Client, verb client.Verb, list client.ObjectList) client.Call {
	gvk := kindOf(c, list)
	if n := len(gvk.Kind) - len("List"); n > 0 && gvk.Kind[n:] == "List" {
		gvk.Kind = gvk.Kind[:n]
	}
	return client.Call{Verb: verb, GVK: gvk}
}

func kindOf(c client.Client, obj runtime.Object) schema.GroupVersionKind {
	gvk, _ := client.KindOf(c.Scheme(), obj) // unknown: the call itself will say so
	return gvk
}
