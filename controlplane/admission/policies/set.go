// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/storage"
)

// set has the policies of one kind that are in force: those with a binding. A policy or
// binding is in force when the answer of its write is sent: each request compares the
// revision of their last change. A set is safe for concurrent use.
type set struct {
	deps     *match.Deps
	store    storage.Viewer
	programs *programs
	// buckets of policies and bindings.
	buckets [2]string

	building    sync.Mutex // of current
	definitions decoded[*definition]
	bindings    decoded[*binding]

	now atomic.Pointer[inForce]
}

// inForce are the policies as of one revision. It is immutable.
type inForce struct {
	at    storage.Revision
	index *match.Index[policy]
}

// newSet returns the policies of the kinds with these plural names.
func newSet(store storage.Viewer, deps *match.Deps, compiled *programs, policies, bindings string) *set {
	return &set{deps: deps, store: store, programs: compiled, buckets: [2]string{v1.GroupName + "/" + policies, v1.GroupName + "/" + bindings}}
}

// candidates returns the policies whose rules may name a write, by name.
func (s *set) candidates(ctx context.Context, r *resource.AdmissionRequest) ([]policy, error) {
	at, err := s.store.LastModified(ctx, s.buckets[:]...)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	now := s.now.Load()
	if now == nil || now.at < at {
		if now, err = s.build(ctx, at); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	return now.index.Candidates(r), nil
}

// build reads all policies and bindings, and decodes those that have changed.
func (s *set) build(ctx context.Context, at storage.Revision) (*inForce, error) {
	s.building.Lock()
	defer s.building.Unlock()
	if now := s.now.Load(); now != nil && now.at >= at {
		return now, nil
	}
	view, err := s.store.View(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.buckets[0], err)
	}
	definitions, err := s.definitions.read(view, s.buckets[0])
	if err != nil {
		return nil, err
	}
	bindings, err := s.bindings.read(view, s.buckets[1])
	if err != nil {
		return nil, err
	}
	of := map[string][]*binding{}
	for _, b := range bindings {
		of[b.policy] = append(of[b.policy], b)
	}
	var bound []policy
	slots := sets.New[*slot]()
	for _, d := range definitions {
		if bindings := of[d.name]; len(bindings) > 0 {
			bound = append(bound, policy{d, bindings})
			slots.Insert(d.program)
		}
	}
	s.programs.retain(slots)
	now := &inForce{at: at, index: match.NewPolicyIndex(s.deps, bound, func(p policy) *match.Constraints { return p.constraints })}
	s.now.Store(now)
	return now, nil
}

// decoded keeps decoded objects of a kind while their records do not change.
type decoded[T any] struct {
	// decode decodes a record; before is the last version, the zero value if there is none.
	decode func(rec *storage.Record, before T) (T, error)
	known  map[string]version[T]
}

type version[T any] struct {
	modified storage.Revision
	obj      T
}

// read returns the objects of a kind by name.
func (d *decoded[T]) read(view storage.View, bucket string) ([]T, error) {
	var out []T
	now := map[string]version[T]{}
	for rec := range view.Ascend(bucket, "", "") {
		v := d.known[rec.Key.Name]
		if v.modified != rec.Modified {
			obj, err := d.decode(rec, v.obj)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", rec.Key, err)
			}
			v = version[T]{rec.Modified, obj}
		}
		now[rec.Key.Name] = v
		out = append(out, v.obj)
	}
	d.known = now
	return out, nil
}
