// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package await waits until objects of an API server meet a condition. It watches and
// does not poll: the condition is evaluated at the start and after every change. It is a
// small package because scripts, tests and command lines share it.
package await

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
)

// Object waits until condition holds for the object of a key, and returns it.
// An object that does not exist is passed as the zero T. When ctx ends first
// the error tells what the object looked like last.
func Object[T client.Object](ctx context.Context, c client.Client, key client.ObjectKey, condition func(T) bool) (T, error) {
	var last T
	empty, gvk, err := empty[T](c)
	if err != nil {
		return last, err
	}
	err = follow(ctx, c, gvk, func() (bool, error) {
		obj := empty.DeepCopyObject().(T)
		var none T
		switch err := c.Get(ctx, key, obj); {
		case apierrors.IsNotFound(err):
			obj = none
		case err != nil:
			return false, err
		}
		last = obj
		return condition(obj), nil
	}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if err != nil {
		return last, fmt.Errorf("wait for %s %s: %w; last seen: %s", gvk.Kind, client.FormatKey(key), err, describe(last))
	}
	return last, nil
}

// Gone is a condition of [Object]: it does not exist.
func Gone[T client.Object](obj T) bool {
	var none T
	return client.Object(obj) == client.Object(none)
}

// Ready is a condition of [Object]: the condition Ready in its status is True
// and speaks of the newest generation.
func Ready[T client.Object](obj T) bool {
	if Gone(obj) {
		return false
	}
	ready, err := Condition(obj, "Ready")
	return err == nil && ready != nil && ready.Status == metav1.ConditionTrue &&
		(ready.ObservedGeneration == 0 || ready.ObservedGeneration == obj.GetGeneration())
}

// Condition returns a condition in the status of an object of any Go type, nil when
// it is absent.
func Condition(obj client.Object, conditionType string) (*metav1.Condition, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var o struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("read the conditions: %w", err)
	}
	return meta.FindStatusCondition(o.Status.Conditions, conditionType), nil
}

// List waits until condition holds for a list, and returns it. When ctx ends
// first the error tells how many items there were last.
func List[L client.ObjectList](ctx context.Context, c client.Client, condition func(L) bool, opts ...client.ListOption) (L, error) {
	var last L
	empty, gvk, err := empty[L](c)
	if err != nil {
		return last, err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	err = follow(ctx, c, gvk, func() (bool, error) {
		list := empty.DeepCopyObject().(L)
		if err := c.List(ctx, list, opts...); err != nil {
			return false, err
		}
		last = list
		return condition(list), nil
	}, opts...)
	if err != nil {
		return last, fmt.Errorf("wait for a list of %s: %w; last seen: %d items", gvk.Kind, err, meta.LenList(last))
	}
	return last, nil
}

func empty[T runtime.Object](c client.Client) (T, schema.GroupVersionKind, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		var none T
		return none, schema.GroupVersionKind{}, fmt.Errorf("wait for a %v: want a pointer to a Go type of a kind", t)
	}
	obj := reflect.New(t.Elem()).Interface().(T)
	gvk, err := client.KindOf(c.Scheme(), obj)
	return obj, gvk, err
}

// errEnded ends a watch that is to be made anew.
var errEnded = errors.New("the watch ended")

// follow calls check at once and after every change of the watched objects,
// until it is content. Watches that end are made anew.
func follow(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, check func() (bool, error), opts ...client.ListOption) error {
	for {
		ok, err := once(ctx, c, gvk, check, opts)
		switch {
		case ok:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, errEnded):
			return err
		}
	}
}

func once(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, check func() (bool, error), opts []client.ListOption) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	changes, err := c.Watch(ctx, list, opts...)
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	for {
		// The check comes after the watch began, so that no change slips through.
		if ok, err := check(); ok || err != nil {
			return ok, err
		}
		event, open := <-changes.ResultChan()
		switch {
		case !open:
			return false, errEnded
		case event.Type == watch.Error:
			return false, errors.Join(errEnded, apierrors.FromObject(event.Object))
		}
	}
}

func describe(obj client.Object) string {
	if v := reflect.ValueOf(obj); !v.IsValid() || v.IsNil() {
		return "it does not exist"
	}
	shown := obj.DeepCopyObject().(client.Object)
	shown.SetManagedFields(nil)
	data, err := json.MarshalIndent(shown, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}
