// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// mirrors follow the metadata of all objects that other servers serve and that can be listed,
// watched and deleted. Each has a goroutine while it is followed.
type mirrors struct {
	fetch   step.Fetcher
	running context.Context // the life of the collector
	stop    context.CancelFunc
	ended   sync.WaitGroup
	by      map[string]*mirror // by bucket; for the controller alone

	mu      sync.Mutex
	signal  func()
	changes map[storage.Key]*changes // not taken yet
}

// changes are all of one object since they were taken last.
type changes struct {
	object *step.Object
	gone   []types.UID
}

func newMirrors(fetch step.Fetcher) *mirrors {
	m := &mirrors{fetch: fetch, by: map[string]*mirror{}, changes: map[storage.Key]*changes{}, signal: func() {}}
	m.running, m.stop = context.WithCancel(context.Background())
	return m
}

// follow begins and ends mirrors, so that there is one for each resource. Those of versions
// that are stale stay as they are. It returns the buckets of those that ended.
func (m *mirrors) follow(e *step.Elsewhere) (ended []string) {
	if m.running.Err() != nil {
		return nil
	}
	wanted := map[string]bool{}
	for _, r := range e.Resources {
		if r.Can("list", "watch", "delete") {
			wanted[r.Bucket] = true
			if m.begin(r) {
				ended = append(ended, r.Bucket)
			}
		}
	}
	for bucket, one := range m.by {
		stale := slices.ContainsFunc(e.Stale, func(gv groupVersion) bool {
			return gv.Group == one.resource.Group && gv.Version == one.resource.Version
		})
		if !wanted[bucket] && !stale {
			one.stop()
			delete(m.by, bucket)
			ended = append(ended, bucket)
		}
	}
	slices.Sort(ended)
	return ended
}

// begin begins a mirror, unless there is one. It reports whether that ended another one, of
// another version.
func (m *mirrors) begin(r step.Resource) (ended bool) {
	if known := m.by[r.Bucket]; known != nil {
		if known.resource.Version == r.Version && known.resource.Namespaced == r.Namespaced {
			return false
		}
		known.stop()
		ended = true
	}
	ctx, stop := context.WithCancel(m.running)
	one := &mirror{resource: r, fetch: m.fetch, seen: map[storage.Key]types.UID{}, stop: stop}
	one.changed = func(c change) {
		if ctx.Err() == nil {
			m.note(c)
		}
	}
	m.by[r.Bucket] = one
	m.ended.Go(func() { one.run(ctx) })
	return ended
}

// note takes in a change of one object.
func (m *mirrors) note(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.changes[c.key]
	if known == nil {
		known = &changes{}
		m.changes[c.key] = known
	}
	known.object = c.object
	if c.gone != "" {
		known.gone = append(known.gone, c.gone)
	}
	m.signal()
}

// take returns what has changed since the last time.
func (m *mirrors) take() map[storage.Key]*changes {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.changes) == 0 {
		return nil
	}
	out := m.changes
	m.changes = map[storage.Key]*changes{}
	return out
}

// close ends all mirrors, and returns when they have ended.
func (m *mirrors) close() {
	m.stop()
	m.ended.Wait()
}
