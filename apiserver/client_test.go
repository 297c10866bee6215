// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestDynamicClientLivesAnObjectsLife(t *testing.T) {
	t.Parallel()
	c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
	ctx := context.Background()

	made, err := c.Create(ctx, widget("one"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.GetUID() == "" || made.GetResourceVersion() == "" || made.GetGeneration() != 1 {
		t.Errorf("created object lacks metadata: %v", made.Object["metadata"])
	}
	if size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size"); size != 1 {
		t.Errorf("spec.size is %d, want the default", size)
	}
	if entries := made.GetManagedFields(); len(entries) != 1 || entries[0].Operation != metav1.ManagedFieldsOperationUpdate {
		t.Errorf("managed fields %v", entries)
	}
	if _, err := c.Create(ctx, widget("one"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}

	got, err := c.Get(ctx, "one", metav1.GetOptions{})
	if err != nil || got.GetUID() != made.GetUID() {
		t.Fatalf("get: %v, %v", got, err)
	}

	again, err := c.Update(ctx, got.DeepCopy(), metav1.UpdateOptions{})
	if err != nil || again.GetResourceVersion() != got.GetResourceVersion() {
		t.Errorf("an update without a change wrote: %s, %v", again.GetResourceVersion(), err)
	}

	_ = unstructured.SetNestedField(got.Object, int64(3), "spec", "size")
	updated, err := c.Update(ctx, got, metav1.UpdateOptions{})
	if err != nil || updated.GetGeneration() != 2 || updated.GetResourceVersion() == made.GetResourceVersion() {
		t.Fatalf("update: %v, %v", updated, err)
	}
	if _, err := c.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("stale update: %v", err)
	}

	_ = unstructured.SetNestedField(updated.Object, "fine", "status", "phase")
	status, err := c.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if err != nil || status.GetGeneration() != 2 {
		t.Fatalf("status: %v, %v", status, err)
	}

	patched, err := c.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"colour":"blue"}}`), metav1.PatchOptions{})
	if err != nil || patched.GetGeneration() != 3 {
		t.Fatalf("patch: %v, %v", patched, err)
	}
	if phase, _, _ := unstructured.NestedString(patched.Object, "status", "phase"); phase != "fine" {
		t.Errorf("the patch lost the status: %v", patched.Object)
	}

	list, err := c.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.GetResourceVersion() == "" {
		t.Fatalf("list: %v, %v", list, err)
	}

	if err := c.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v", err)
	}
}

func TestWatchSeesEveryChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dynamicClient(t, newServer(t)).Resource(widgets).Namespace("default")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.Create(ctx, widget("old"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w, err := c.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		expect := func(kind watch.EventType, name string) {
			t.Helper()
			event := <-w.ResultChan()
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != kind || obj.GetName() != name {
				t.Fatalf("got %s %v, want %s %s", event.Type, event.Object, kind, name)
			}
		}
		expect(watch.Added, "old")
		if _, err := c.Create(ctx, widget("new"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(watch.Added, "new")
		if _, err := c.Patch(ctx, "new", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/size","value":2}]`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(watch.Modified, "new")
		if err := c.Delete(ctx, "old", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(watch.Deleted, "old")
	})
}
