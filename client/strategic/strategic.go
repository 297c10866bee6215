// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strategic makes strategic merge patches, which merge lists of
// built-in kinds by key. It is a package of its own because it links the
// schemas of the field tags; custom resources do not support these patches: use
// client.MergeFrom or Apply for them.
package strategic

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/steer-dev/steer/client"
)

// MergeFrom is a strategic merge patch of what has changed since original,
// which is a deep copy made before the changes. With lock, the patch fails with
// a conflict when the object has changed on the server since original.
func MergeFrom(original client.Object, lock bool) client.Patch { return patch{original, lock} }

type patch struct {
	original client.Object
	lock     bool
}

func (p patch) Type() types.PatchType { return types.StrategicMergePatchType }

func (p patch) Data(obj client.Object) ([]byte, error) {
	if reflect.TypeOf(obj) != reflect.TypeOf(p.original) {
		return nil, fmt.Errorf("strategic merge patch: the original is a %T but the changed object a %T; pass a DeepCopy of the same object", p.original, obj)
	}
	original := p.original
	if p.lock {
		if original.GetResourceVersion() == "" {
			return nil, errors.New("strategic merge patch: the lock needs an original that was read from the server: its resourceVersion is empty")
		}
		original, _ = original.DeepCopyObject().(client.Object)
		original.SetResourceVersion("") // so that it counts as changed
	}
	before, err := json.Marshal(original)
	if err != nil {
		return nil, fmt.Errorf("strategic merge patch: %w", err)
	}
	if p.lock {
		obj, _ = obj.DeepCopyObject().(client.Object)
		obj.SetResourceVersion(p.original.GetResourceVersion())
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("strategic merge patch: %w", err)
	}
	data, err := strategicpatch.CreateTwoWayMergePatch(before, after, obj)
	if err != nil {
		return nil, fmt.Errorf("strategic merge patch: %w", err)
	}
	return data, nil
}
