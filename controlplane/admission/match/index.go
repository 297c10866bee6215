// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Index finds the items whose constraints name the resource and the operation of a write.
// It is immutable but for a memory of what it found, and safe for concurrent use.
type Index[T any] struct {
	d           *Deps
	items       []T
	constraints func(T) *Constraints
	// exempt reports whether no item concerns a kind of write.
	exempt func(kindOfWrite) bool

	mu    sync.Mutex // of additions to known
	known atomic.Pointer[found[T]]
}

// found has the items for kinds of writes, while the server serves the same resources.
type found[T any] struct {
	generation uint64
	items      map[kindOfWrite][]T
}

// kindOfWrite is what rules depend on.
type kindOfWrite struct {
	resource    *resource.Resource
	version     *resource.Version
	subresource string
	operation   resource.Operation
}

// mostKnown bounds the memory of an index.
const mostKnown = 16384

// NewIndex returns an index of webhooks, whose order it keeps. They are never called for
// what configures webhooks and policies, nor for reviews of users and of what they may do.
func NewIndex[T any](d *Deps, items []T, constraints func(T) *Constraints) *Index[T] {
	return newIndex(d, items, constraints, func(k kindOfWrite) bool {
		return isReview(k.resource.GroupResource()) || exempt(kindOf(k.resource, k.version, k.subresource))
	})
}

// NewPolicyIndex returns an index of policies, whose order it keeps. As in kube-apiserver
// they are not evaluated for policies and their bindings, nor for reviews of users and of
// what they may do, but for configurations of webhooks and requests of tokens.
func NewPolicyIndex[T any](d *Deps, items []T, constraints func(T) *Constraints) *Index[T] {
	return newIndex(d, items, constraints, func(k kindOfWrite) bool { return exemptFromPolicies(k.resource.GroupResource()) })
}

func newIndex[T any](d *Deps, items []T, constraints func(T) *Constraints, exempt func(kindOfWrite) bool) *Index[T] {
	x := &Index[T]{d: d, items: items, constraints: constraints, exempt: exempt}
	x.known.Store(&found[T]{})
	return x
}

// Items returns all items. The caller must not change the slice.
func (x *Index[T]) Items() []T { return x.items }

// Candidates returns the items that may concern a write, which [Constraints.Matches] is to
// decide. The caller must not change the slice. For kinds that configure webhooks and
// policies there are none.
func (x *Index[T]) Candidates(r *resource.AdmissionRequest) []T {
	if len(x.items) == 0 || r.Resource == nil || r.Version == nil {
		return nil
	}
	k := kindOfWrite{r.Resource, r.Version, r.Subresource, r.Operation}
	generation := x.d.server.Generation()
	if known := x.known.Load(); known.generation == generation {
		if items, ok := known.items[k]; ok {
			return items
		}
	}
	items := x.find(k)
	x.mu.Lock()
	defer x.mu.Unlock()
	next := &found[T]{generation: generation, items: map[kindOfWrite][]T{}}
	if known := x.known.Load(); known.generation == generation && len(known.items) < mostKnown {
		maps.Copy(next.items, known.items)
	}
	next.items[k] = items
	x.known.Store(next)
	return items
}

// find compares the rules of all items.
func (x *Index[T]) find(k kindOfWrite) []T {
	if x.exempt(k) {
		return nil
	}
	t := target{
		resource: k.resource.GroupResource().WithVersion(k.version.Name), subresource: k.subresource,
		operation: k.operation, namespaced: k.resource.Namespaced,
	}
	others := x.d.equivalents(k.resource, k.version, k.subresource)
	var out []T
	for _, item := range x.items {
		if x.constraints(item).mayName(t, others) {
			out = append(out, item)
		}
	}
	return out
}
