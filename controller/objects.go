// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// objects handles the requests of a controller of a kind: it reads the object
// and sends it where its state belongs.
type objects struct {
	shared     *shared
	of         reflect.Type // the struct
	reconcile  func(ctx context.Context, obj client.Object) (Result, error)
	finalizers []finalizer
	retired    []string
	onGone     func(ctx context.Context, req Request) error
	paused     string // the annotation, or ""
	failures   bool   // conditions tell them
	differ     trace.Differ
	status     statusWriter
}

func (o *objects) describe(key Request) (trace.Object, string) {
	return trace.Object{Group: o.shared.gvk.Group, Kind: o.shared.gvk.Kind, Namespace: key.Namespace, Name: key.Name}, ""
}

// empty is a new object of the kind.
func (o *objects) empty() client.Object {
	obj := reflect.New(o.of).Interface().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(o.shared.gvk)
	return obj
}

// process reads the object of a request. There are three cases: the object is
// gone, it is being deleted, or it is to be reconciled.
func (o *objects) process(a *attempt, key Request) (Result, error) {
	obj := o.empty()
	original, err := o.read(a, key, obj)
	switch {
	case apierrors.IsNotFound(err):
		o.shared.children.Forget(key.NamespacedName)
		if o.onGone != nil {
			return Done(), o.onGone(a, key)
		}
		return Done(), nil
	case err != nil:
		return Result{}, err
	}
	if o.paused != "" && obj.GetAnnotations()[o.paused] == "true" {
		a.logger().Debug("The object is paused", "annotation", o.paused)
		return Done(), nil
	}
	a.children = &o.shared.children
	if err := o.retire(a, obj); err != nil {
		return Result{}, err
	}
	if obj.GetDeletionTimestamp() != nil {
		return o.finalize(a, obj, original)
	}
	if err := o.hold(a, obj); err != nil {
		return Result{}, err
	}
	return o.call(a, obj, original, o.reconcile, func(result Result) ending {
		if result.finished() {
			return observed
		}
		return unobserved
	})
}

// read gets the object, and the shared object that it is a copy of, if there is one.
func (o *objects) read(ctx context.Context, key Request, obj client.Object) (original client.Object, err error) {
	if cached, ok := o.shared.deps.Client.(cache.OriginalReader); ok {
		return cached.GetOriginal(ctx, key.NamespacedName, obj)
	}
	return nil, o.shared.deps.Client.Get(ctx, key.NamespacedName, obj)
}

// ending says what a result means for the status.
type ending uint8

const (
	// unobserved: not finished; the status is written.
	unobserved ending = iota
	// observed: finished, or never to be; the status is written with the observed
	// generation.
	observed
	// unread: the object goes, and its status with it.
	unread
)

// call lets a function work on the object and writes the status that it left,
// also when it failed. end tells what the result of a success means.
func (o *objects) call(a *attempt, obj, original client.Object, fn func(context.Context, client.Object) (Result, error), end func(Result) ending) (Result, error) {
	a.work(obj, original)
	result, err := fn(a, obj)
	before, _ := a.versions()
	fields := o.differ.Changed(before, obj)
	if fields != "" {
		err = errors.Join(err, &ChangedError{Object: a.object.Kind + " " + client.FormatKey(client.ObjectKeyFromObject(obj)), Fields: fields})
	}
	ended := unobserved
	switch {
	case err == nil:
		ended = end(result)
	case fields == "" && IsTerminal(err):
		ended = observed // a verdict on this generation: nothing more will be tried
	}
	if ended == unread || a.stopping.Err() != nil { // it is not read, or nothing can be written any more
		return result, err
	}
	ctx, cancel := a.beyondDeadline()
	defer cancel()
	if inventoryErr := client.IgnoreNotFound(a.inventories.Write(ctx)); inventoryErr != nil {
		err, ended = errors.Join(err, inventoryErr), unobserved
	}
	if o.failures && !isQuiet(err) {
		err = errors.Join(err, failureOf(err).Tell(obj))
	}
	before, _ = a.versions()
	if statusErr := o.status.write(ctx, o.shared, before, obj, ended == observed); statusErr != nil {
		err = errors.Join(err, fmt.Errorf("write status: %w", statusErr))
	}
	return result, err
}

// hold puts the missing finalizers on the object before it is first worked on.
func (o *objects) hold(a *attempt, obj client.Object) error {
	names := slices.Clone(obj.GetFinalizers())
	for _, f := range o.finalizers {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return o.setFinalizers(a, obj, names)
}

// retire takes the retired finalizers off.
func (o *objects) retire(a *attempt, obj client.Object) error {
	if len(o.retired) == 0 {
		return nil
	}
	names := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool {
		return slices.Contains(o.retired, name)
	})
	return o.setFinalizers(a, obj, names)
}
