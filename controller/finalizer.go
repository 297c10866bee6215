// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// finalizer is a name that holds an object back, and the cleanup that lets it
// go.
type finalizer struct {
	name string
	of   reflect.Type
	call func(ctx context.Context, obj client.Object) (FinalizerResult, error)
}

// finalize runs the finalizers of an object that is being deleted, one after
// the other; the first that is not finished ends the attempt.
func (o *objects) finalize(a *attempt, obj, original client.Object) (Result, error) {
	for _, f := range o.finalizers {
		if !slices.Contains(obj.GetFinalizers(), f.name) {
			continue
		}
		last := len(obj.GetFinalizers()) == 1
		var cleanup FinalizerResult
		_, err := o.call(a, obj, original, func(ctx context.Context, obj client.Object) (_ Result, err error) {
			cleanup, err = f.call(ctx, obj)
			return Done(), err
		}, func(Result) ending {
			if last && cleanup.Done() {
				return unread
			}
			return unobserved
		})
		if err != nil || !cleanup.Done() {
			return cleanup.next, err
		}
		if !last { // its status may just have been written: the new revision is the one to expect
			if err := o.shared.deps.Client.Get(a, client.ObjectKeyFromObject(obj), obj); err != nil {
				return Result{}, client.IgnoreNotFound(err)
			}
		}
		names := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool { return name == f.name })
		if err := o.setFinalizers(a, obj, names); apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			return Result{}, err
		}
	}
	return Done(), nil
}

// setFinalizers writes the list of finalizers when it differs, provided that the
// object has not changed since it was read. obj becomes what the server has.
func (o *objects) setFinalizers(ctx context.Context, obj client.Object, names []string) error {
	if slices.Equal(names, obj.GetFinalizers()) {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": names, "resourceVersion": obj.GetResourceVersion(),
	}})
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, data)
	err = o.shared.own.Perform(client.ObjectKeyFromObject(obj), obj.GetResourceVersion(), data, func() (string, error) {
		err := o.shared.deps.Client.Patch(ctx, obj, patch, client.FieldOwner(o.shared.owner))
		return obj.GetResourceVersion(), err
	})
	if err != nil {
		return fmt.Errorf("set finalizers: %w", err)
	}
	return nil
}
