// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/client"
)

// updatedSet is the set in the marks of objects that are in none.
const updatedSet = "update"

// CreateOrUpdate makes obj what mutate makes of it, and reports what was sent. It
// marks the object as Set.Apply does, so that an object which the server keeps
// otherwise than it was sent is not sent again.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object, mutate func() error) (created, updated bool, err error) {
	key := client.ObjectKeyFromObject(obj)
	err = c.Get(ctx, key, obj)
	created = apierrors.IsNotFound(err)
	if err != nil && !created {
		return false, false, err
	}
	before := obj.DeepCopyObject().(client.Object)
	last := markOf(before)
	unmark(obj)
	plain := obj.DeepCopyObject()
	if err := mutate(); err != nil {
		return false, false, err
	}
	if client.ObjectKeyFromObject(obj) != key {
		return false, false, fmt.Errorf("the function renamed %s to %s", client.FormatKey(key), client.FormatKey(client.ObjectKeyFromObject(obj)))
	}
	unmark(obj)
	body, err := bodyOf(obj)
	if err != nil {
		return false, false, err
	}
	m := mark{set: updatedSet, deviation: last.deviation}
	if m.body, err = hashOf(body); err != nil {
		return false, false, err
	}
	if !created {
		deviation, err := deviationOf(before, body)
		if err != nil {
			return false, false, err
		}
		asBefore := last.body == m.body && (deviation == 0 || deviation == last.deviation)
		if asBefore || equality.Semantic.DeepEqual(plain, obj) {
			obj.SetAnnotations(before.GetAnnotations())
			return false, false, nil
		}
	}
	return created, !created, send(ctx, c, obj, body, m, created)
}

// send writes the marked object. When the server keeps it otherwise than was known,
// it is written once more, with that in its mark.
func send(ctx context.Context, c client.Client, obj client.Object, body map[string]any, m mark, create bool) error {
	for again := false; ; again = true {
		m.put(obj)
		write := c.Update
		if create && !again {
			write = c.Create
		}
		if err := write(ctx, obj); err != nil {
			return err
		}
		known := m.deviation
		var err error
		if m.deviation, err = deviationOf(obj, body); err != nil {
			return err
		}
		if again || m.deviation == 0 || m.deviation == known {
			return nil
		}
	}
}

// unmark takes the mark off.
func unmark(obj client.Object) {
	if annotations := obj.GetAnnotations(); annotations[AppliedAnnotation] != "" {
		annotations = maps.Clone(annotations)
		delete(annotations, AppliedAnnotation)
		if len(annotations) == 0 {
			annotations = nil
		}
		obj.SetAnnotations(annotations)
	}
}

// bodyOf is what an author says of an object: all but what only the server writes.
func bodyOf(obj client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	body := runtime.DeepCopyJSON(content)
	for _, name := range []string{"status", "apiVersion", "kind"} {
		delete(body, name)
	}
	if metadata, ok := body["metadata"].(map[string]any); ok {
		for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
			delete(metadata, name)
		}
	}
	return body, nil
}
