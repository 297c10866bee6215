// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// retryAfter is the pause after a failed request of the store itself.
const retryAfter = 500 * time.Millisecond

// errUnreadable: the history cannot be applied; the newest state replaces it.
var errUnreadable = errors.New("etcd: the history cannot be applied")

// follow keeps the mirror until the store is closed.
func (s *Store) follow() {
	for s.ctx.Err() == nil {
		err := s.watch()
		if errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, errUnreadable) {
			err = s.reload()
		}
		s.mu.Lock()
		s.trouble = err
		s.mu.Unlock()
		if err != nil {
			s.pause(retryAfter)
		}
	}
}

// pause waits, unless the store is closed.
func (s *Store) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// watch applies the changes after those that the mirror has until it fails.
func (s *Store) watch() error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	defer cancel()
	from := s.reached.Load() + 1
	for resp := range s.client.Watch(ctx, string(s.layout), clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithCreatedNotify()) {
		if err := resp.Err(); err != nil {
			return fmt.Errorf("etcd: watch from revision %d: %w", from, err)
		}
		if err := s.apply(&resp); err != nil {
			return err
		}
		s.mu.Lock()
		s.trouble = nil
		s.mu.Unlock()
	}
	return fmt.Errorf("etcd: the watch from revision %d has ended", from)
}

// apply applies a message of the watch, which has whole revisions.
func (s *Store) apply(resp *clientv3.WatchResponse) error {
	if resp.IsProgressNotify() {
		s.advance(storage.Revision(resp.Header.Revision))
		return nil
	}
	for events := resp.Events; len(events) > 0; {
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == events[0].Kv.ModRevision {
			n++
		}
		if err := s.applyRevision(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// applyRevision applies the events of one revision.
func (s *Store) applyRevision(events []*clientv3.Event) error {
	rev := storage.Revision(events[0].Kv.ModRevision)
	own := map[string][]byte{}
	var changes []storage.Change
	at := s.at(rev)
	for _, e := range events {
		raw := string(e.Kv.Key)
		deleted := e.Type == clientv3.EventTypeDelete
		if s.layout.isOwn(raw) {
			if own[raw] = e.Kv.Value; deleted {
				own[raw] = nil
			}
			continue
		}
		key, ok := s.layout.parse(raw)
		if !ok {
			return fmt.Errorf("%w: %w (%q)", errUnreadable, ErrForeign, raw)
		}
		c := storage.Change{Revision: rev, Time: at, Key: key}
		if !deleted {
			var err error
			if c.Value, c.Stamp, err = decode(raw, e.Kv.Value, rev); err != nil {
				return fmt.Errorf("%w: %w", errUnreadable, err)
			}
		}
		changes = append(changes, c)
	}
	s.note(rev, own)
	if len(changes) > 0 {
		if err := s.mirror.Apply(changes...); err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	s.advance(rev)
	return nil
}

// advance reports that the mirror has all changes up to a revision.
func (s *Store) advance(rev storage.Revision) {
	s.mirror.Advance(rev)
	if int64(rev) > s.reached.Load() {
		s.reached.Store(int64(rev))
	}
}

// reload replaces the mirror by the newest state, where the changes after the mirror's
// cannot be had.
func (s *Store) reload() error {
	c, err := s.load(s.ctx, 0, s.mirror.Get)
	if err != nil {
		return err
	}
	switch now := s.reached.Load(); {
	case int64(c.revision) < now:
		return s.lose(ErrRestored)
	case int64(c.revision) == now:
		return fmt.Errorf("etcd: revision %d cannot be read", now+1)
	}
	s.adopt(c)
	if err := s.mirror.Reset(c); err != nil {
		return err
	}
	s.reached.Store(int64(c.revision))
	return nil
}

// reach waits until the mirror has a revision that etcd has.
func (s *Store) reach(ctx context.Context, rev storage.Revision) error {
	for int64(rev) > s.reached.Load() {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		err := s.mirror.Wait(wait, rev)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, storage.ErrClosed):
			return err
		}
		if err := s.usable(ctx); err != nil {
			return err
		}
		s.askProgress(ctx)
	}
	return nil
}

// askProgress has etcd send the revision up to which the watch has seen everything, for
// revisions that changed nothing in the prefix. It may be lost.
func (s *Store) askProgress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), requestTime)
	defer cancel()
	_ = s.client.RequestProgress(ctx) // asked again
}
