// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// getLive reads what only the server knows, and tells the store.
func (s *shared) getLive(ctx context.Context, live client.Reader, key client.ObjectKey, obj client.Object) error {
	mark, begun := s.store.Mark(), time.Now()
	err := live.Get(ctx, key, obj, client.Live)
	s.cache.consistent(client.VerbGet, begun, err)
	switch {
	case apierrors.IsNotFound(err):
		s.settleOne(ctx, mark, key, nil)
	case err != nil:
	case s.selects(obj) == rejected:
		s.store.Resolve(key, mark, nil, obj.GetResourceVersion())
		return s.notFound(key)
	case s.selects(obj) == unclear:
		if s.settleOne(ctx, mark, key, obj) {
			return s.notFound(key)
		}
	default:
		s.resolve(key, mark, obj)
	}
	return err
}

// notFound is the error of a read of what is not there.
func (s *shared) notFound(key client.ObjectKey) error {
	err := apierrors.NewNotFound(schema.GroupResource{Group: s.place.GVK.Group, Resource: s.resourceName()}, key.Name)
	return fmt.Errorf("get %s %s: %w", s.place.GVK.Kind, key, err)
}

// resolve tells the store of a selected object that a live read, asked for at
// mark, has found.
func (s *shared) resolve(key client.ObjectKey, mark uint64, obj client.Object) {
	if own := s.stored(obj); own != nil {
		s.store.Resolve(key, mark, own, obj.GetResourceVersion())
	}
}

// settleOne asks the server by a list whether there is something at key that is
// selected, because a NotFound has no revision but a list of nothing has. obj is
// what has been read there after mark, or nil. Without an answer the reads of key
// go on going to the server.
func (s *shared) settleOne(ctx context.Context, mark uint64, key client.ObjectKey, obj client.Object) (missing bool) {
	selection := s.options.selection
	selection.Namespace = key.Namespace
	selection.FieldSelector = fields.OneTermEqualSelector("metadata.name", key.Name)
	if f := s.options.selection.FieldSelector; f != nil {
		selection.FieldSelector = fields.AndSelectors(f, selection.FieldSelector)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(s.place.GVK.GroupVersion().WithKind(s.place.GVK.Kind + "List"))
	err := s.cache.live.List(ctx, list, &selection)
	switch {
	case err != nil:
	case len(list.Items) == 0:
		s.store.Resolve(key, mark, nil, list.ResourceVersion)
		return true
	case obj != nil && list.Items[0].ResourceVersion == obj.GetResourceVersion():
		s.resolve(key, mark, obj)
	}
	return false
}

// settle asks the server for everything in namespace, and tells the store what
// has become of the objects whose state only the server knows. like says in
// which form to ask.
func (s *shared) settle(ctx context.Context, live client.Reader, like client.ObjectList, namespace string) error {
	mark, begun := s.store.Mark(), time.Now()
	for _, src := range s.sources {
		in := namespace
		if src.Collection.Namespace != "" {
			if namespace != "" && namespace != src.Collection.Namespace {
				continue
			}
			in = src.Collection.Namespace
		}
		selection := s.options.selection
		selection.Namespace, selection.Live = in, true
		list := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.ObjectList)
		list.GetObjectKind().SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
		err := live.List(ctx, list, &selection)
		s.cache.consistent(client.VerbList, begun, err)
		if err != nil {
			return err
		}
		found := map[client.ObjectKey]client.Object{}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			if obj, ok := o.(client.Object); ok {
				found[client.ObjectKeyFromObject(obj)] = obj
			}
			return nil
		})
		for _, key := range s.store.UnknownKeys(in) {
			if obj := found[key]; obj != nil {
				s.resolve(key, mark, obj)
			} else {
				s.store.Resolve(key, mark, nil, list.GetResourceVersion())
			}
		}
	}
	return nil
}
