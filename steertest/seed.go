// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/steertest/internal/host"
)

// Apply applies the objects of files and folders; those that name no namespace
// go to [Env.Namespace]. Relative paths are looked for like [Options.CRDs].
func (e *Env) Apply(paths ...string) {
	e.Helper()
	found, err := host.FindAll(paths)
	if err != nil {
		e.Fatalf("steertest: apply manifests: %v", err)
	}
	objects, err := manifest.Read(found...)
	for i := range objects {
		if err == nil && e.Plane == nil {
			err = e.place(objects[i])
		}
	}
	if err == nil {
		err = manifest.Apply(e.ctx, e.Client, e.Namespace, objects)
	}
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
}

// defaultManifests is the folder of a project with manifests of its own.
const defaultManifests = "config/extras"

// installManifests applies the manifests of Options.Manifests.
func (e *Env) installManifests() {
	e.Helper()
	paths := e.options.Manifests
	if paths == nil {
		if _, err := host.Find(defaultManifests); errors.Is(err, fs.ErrNotExist) {
			return
		}
		paths = []string{defaultManifests}
	}
	found, err := host.FindAll(paths)
	if err != nil {
		e.Fatalf("steertest: find the manifests: %v", err)
	}
	objects, err := manifest.Read(found...)
	for i := range objects {
		if err == nil && e.Plane == nil {
			err = e.place(objects[i])
		}
	}
	var left []manifest.Object
	if err == nil {
		left, err = manifest.ApplyServed(e.ctx, e.Client, e.Namespace, objects)
	}
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	for _, o := range left {
		e.Logf("steertest: %s: %s %s is left out: no CRD defines the kind %s; Options.CRDs may have one", o.File, o.GetKind(), o.GetName(), o.GroupVersionKind().GroupKind())
	}
}

// Create brings an object into the state that it is given in: with its status,
// and, when it has a deletion timestamp, on its way out. The latter needs a
// finalizer, since the object would be gone at once without; the time is that of
// the call. Without a namespace it goes to [Env.Namespace]. obj becomes what the server has.
func (e *Env) Create(obj client.Object) {
	e.Helper()
	deleting := obj.GetDeletionTimestamp() != nil
	if deleting && len(obj.GetFinalizers()) == 0 {
		e.Fatalf("steertest: create %T %s: it has a deletion timestamp and no finalizer, so it would be gone at once: add a finalizer", obj, obj.GetName())
	}
	status, err := givenStatus(obj)
	if err != nil {
		e.Fatalf("steertest: read the status of %T %s: %v", obj, obj.GetName(), err)
	}
	if err := e.place(obj); err != nil {
		e.Fatalf("steertest: create %T %s: %v", obj, obj.GetName(), err)
	}
	obj.SetResourceVersion("")
	obj.SetDeletionTimestamp(nil)
	if err := e.Client.Create(e.ctx, obj); err != nil {
		e.Fatalf("steertest: create %T %s: %v", obj, obj.GetName(), err)
	}
	if status != nil {
		// A patch does not mind that an operator may have changed the object by now.
		if err := e.Client.Status().Patch(e.ctx, obj, client.RawPatch(types.MergePatchType, status)); err != nil {
			e.Fatalf("steertest: set the status of %T %s: %v", obj, obj.GetName(), err)
		}
	}
	if !deleting {
		return
	}
	err = e.Client.Delete(e.ctx, obj)
	if err == nil {
		err = client.IgnoreNotFound(e.Client.Get(e.ctx, client.ObjectKeyFromObject(obj), obj))
	}
	if err != nil {
		e.Fatalf("steertest: delete %T %s: %v", obj, obj.GetName(), err)
	}
}

// Update changes the object of a key, "namespace/name" or "name" in [Env.Namespace], and
// returns what the server has then: the object, and its status where change has set that. When
// it was changed meanwhile, by the operator under test for example, it is read again and
// change is called with what it is now.
//
//	steertest.Update(env, "default/web", func(f *v1.Fleet) { f.Spec.Replicas = 3 })
func Update[T client.Object](e *Env, name string, change func(T)) T {
	e.Helper()
	at := key[T](e, name)
	ctx, cancel := e.bounded()
	defer cancel()
	for {
		obj := empty[T]()
		err := e.Client.Get(ctx, at, obj)
		if err == nil {
			change(obj)
			err = e.update(ctx, obj)
		}
		switch {
		case err == nil:
			return obj
		case !apierrors.IsConflict(err) || ctx.Err() != nil:
			e.Fatalf("steertest: update %T %s: %v", obj, client.FormatKey(at), err)
		}
	}
}

// update writes an object, and its status where the server has another one then.
func (e *Env) update(ctx context.Context, obj client.Object) error {
	want := obj.DeepCopyObject().(client.Object)
	if err := e.Client.Update(ctx, obj); err != nil {
		return err
	}
	wanted, err := statusOf(want)
	if err != nil {
		return err
	}
	if got, err := statusOf(obj); err != nil || bytes.Equal(got, wanted) {
		return err
	}
	want.SetResourceVersion(obj.GetResourceVersion())
	if err := e.Client.Status().Update(ctx, want); err != nil {
		return err
	}
	return e.Client.Get(ctx, client.ObjectKeyFromObject(want), obj)
}

// givenStatus returns the merge patch that sets the status of an object; nil if the object has
// none, or that of a new value of its type, which a controller may have replaced by now.
func givenStatus(obj client.Object) ([]byte, error) {
	status, err := statusOf(obj)
	if err != nil || len(status) == 0 || string(status) == "{}" {
		return nil, err
	}
	if of := reflect.TypeOf(obj); of.Kind() == reflect.Pointer {
		unset, err := statusOf(reflect.New(of.Elem()).Interface())
		if err != nil || bytes.Equal(status, unset) {
			return nil, err
		}
	}
	return json.Marshal(map[string]json.RawMessage{"status": status})
}

func statusOf(obj any) (json.RawMessage, error) {
	content, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var given struct {
		Status json.RawMessage `json:"status"`
	}
	err = json.Unmarshal(content, &given)
	return given.Status, err
}
