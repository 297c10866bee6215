// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// finish gives back what a write took that has not happened. Of one that has,
// [ServiceAllocator.committed] has noted what it holds.
func (t *taking) finish(o resource.Outcome) {
	a := t.a
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, held := range t.taken {
		h := a.used[held]
		switch {
		case h.by != t: // the stored Service has it
		case o == resource.Unknown:
			a.set(held, holder{key: t.key, doubtful: true})
		case o == resource.NotStored && h.doubtful: // an earlier write may have it still
			h.by = nil
			a.set(held, h)
		default: // not stored, or without it
			a.set(held, holder{})
		}
	}
}

// decide gives back, or notes as held, what was taken by writes of unknown outcome that
// can be read from the store by now.
func (a *ServiceAllocator) decide(ctx context.Context) error {
	a.mu.Lock()
	doubts := a.doubts
	a.mu.Unlock()
	if doubts == 0 {
		return nil
	}
	view, err := a.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("read services: %w", err)
	}
	for _, s := range a.decided(view) {
		if err := a.publish(ctx, s, nil); err != nil {
			return err
		}
	}
	return nil
}

// decided settles the doubts that a view decides, and returns the Services that were stored
// after all.
func (a *ServiceAllocator) decided(view storage.View) []*corev1.Service {
	a.mu.Lock()
	defer a.mu.Unlock()
	var stored []*corev1.Service
	for held, h := range a.used {
		if !h.doubtful || h.by != nil {
			continue
		}
		switch s := serviceWith(view, h.key, held); {
		case s != nil:
			a.set(held, holder{key: s.Namespace + "/" + s.Name})
			stored = append(stored, s)
		case h.at == 0:
			h.at = view.Revision()
			a.set(held, h)
		case view.Revision() > h.at:
			a.set(held, holder{})
		}
	}
	return stored
}

// serviceWith returns the stored Service that has an address or port, of those whose keys
// begin with a text: the key of a Service under a generated name ends before the name.
func serviceWith(view storage.View, prefix string, held any) *corev1.Service {
	for rec := range view.Ascend("services", prefix, "") {
		s := &corev1.Service{}
		if json.Unmarshal(rec.Value, s) == nil && slices.Contains(heldBy(s), held) {
			return s
		}
	}
	return nil
}
