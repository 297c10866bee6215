// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// Patch is a change to send. Data may look at obj, the object of the call.
type Patch interface {
	Type() types.PatchType
	Data(obj Object) ([]byte, error)
}

// MergeOption adjusts MergeFrom.
type MergeOption interface{ applyToMerge(*mergePatch) }

type optimisticLock bool

// OptimisticLock makes a merge patch fail with a conflict when the object has
// changed since the copy that MergeFrom was given.
const OptimisticLock optimisticLock = true

func (l optimisticLock) applyToMerge(p *mergePatch) { p.lock = bool(l) }

// MergeFrom is a JSON merge patch of what has changed since original, which is
// a deep copy made before the changes. Lists are replaced as a whole.
func MergeFrom(original Object, opts ...MergeOption) Patch {
	p := &mergePatch{original: original}
	for _, opt := range opts {
		opt.applyToMerge(p)
	}
	return p
}

type mergePatch struct {
	original Object
	lock     bool
}

func (p *mergePatch) Type() types.PatchType { return types.MergePatchType }

func (p *mergePatch) Data(obj Object) ([]byte, error) {
	if reflect.TypeOf(obj) != reflect.TypeOf(p.original) {
		return nil, fmt.Errorf("merge patch: the original is a %T but the changed object a %T; pass a DeepCopy of the same object", p.original, obj)
	}
	before, err := toMap(p.original)
	if err != nil {
		return nil, err
	}
	after, err := toMap(obj)
	if err != nil {
		return nil, err
	}
	// The kind is in the URL, and a decoded object may or may not carry it.
	for _, m := range []map[string]any{before, after} {
		delete(m, "apiVersion")
		delete(m, "kind")
	}
	diff := mergeDiff(before, after)
	if p.lock {
		rv := p.original.GetResourceVersion()
		if rv == "" {
			return nil, errors.New("merge patch: OptimisticLock needs an original that was read from the server: its resourceVersion is empty")
		}
		metadata, _ := diff["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			diff["metadata"] = metadata
		}
		metadata["resourceVersion"] = rv
	}
	return json.Marshal(diff)
}

// mergeDiff is the RFC 7386 patch that turns before into after.
func mergeDiff(before, after map[string]any) map[string]any {
	diff := map[string]any{}
	for k := range before {
		if _, ok := after[k]; !ok {
			diff[k] = nil
		}
	}
	for k, now := range after {
		was, ok := before[k]
		nowMap, nowIsMap := now.(map[string]any)
		wasMap, wasIsMap := was.(map[string]any)
		switch {
		case ok && nowIsMap && wasIsMap:
			if sub := mergeDiff(wasMap, nowMap); len(sub) > 0 {
				diff[k] = sub
			}
		case !ok || !reflect.DeepEqual(was, now):
			diff[k] = now
		}
	}
	return diff
}

func toMap(obj runtime.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	m := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &m); err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return m, nil
}

// RawPatch sends data as it is.
func RawPatch(patchType types.PatchType, data []byte) Patch {
	return rawPatch{patchType, data}
}

type rawPatch struct {
	patchType types.PatchType
	data      []byte
}

func (p rawPatch) Type() types.PatchType       { return p.patchType }
func (p rawPatch) Data(Object) ([]byte, error) { return p.data, nil }
