// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"net/netip"
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
			a.set(held, holder{key: t.key, doubtful: true, leaving: h.leaving})
		case o == resource.NotStored && h.doubtful: // an earlier write may have it still
			h.by = nil
			a.set(held, h)
		default: // not stored, or without it
			a.set(held, holder{})
		}
	}
}

// replaced notes that it is unknown whether a Service still holds what it held, if the
// outcome of its deletion or update is unknown.
func (a *ServiceAllocator) replaced(old *corev1.Service, o resource.Outcome) {
	if o != resource.Unknown {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := old.Namespace + "/" + old.Name
	for _, held := range heldBy(old) {
		if h := a.used[held]; h.key == key {
			a.set(held, holder{key: key, by: h.by, doubtful: true, leaving: true})
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
	view := a.store.Latest()
	stored, left := a.decided(view)
	for _, s := range stored {
		if err := a.publish(ctx, s, nil); err != nil {
			return err
		}
	}
	for held, h := range left {
		if err := a.leave(ctx, held, h); err != nil {
			return err
		}
	}
	return nil
}

// decided settles the doubts that a view decides. It returns the Services that were stored
// after all, and what deleted ones have left, marked as taken until it is given back.
func (a *ServiceAllocator) decided(view storage.View) (stored []*corev1.Service, left map[any]holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left = map[any]holder{}
	for held, h := range a.used {
		if !h.doubtful || h.by != nil {
			continue
		}
		switch s := serviceWith(view, h.key, held); {
		case s != nil && !h.leaving:
			a.set(held, holder{key: s.Namespace + "/" + s.Name})
			stored = append(stored, s)
		case h.at == 0:
			h.at = view.Revision()
			a.set(held, h)
		case view.Revision() <= h.at:
		case s != nil: // it was not deleted
			a.set(held, holder{key: h.key})
		case h.leaving:
			h.by = &taking{}
			a.set(held, h)
			left[held] = h
		default:
			a.set(held, holder{})
		}
	}
	return stored, left
}

// leave gives back what a deleted Service held, after the IPAddress that stands for it.
func (a *ServiceAllocator) leave(ctx context.Context, held any, h holder) error {
	var err error
	if ip, ok := held.(netip.Addr); ok {
		err = a.unpublish(ctx, ip, h.key)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.used[held] != h: // a Service of the same name has taken it again
	case err == nil:
		a.set(held, holder{})
	default:
		h.by = nil
		a.set(held, h)
	}
	return err
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
