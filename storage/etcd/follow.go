// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
		s.turn()
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

// stream is the watch that is open. Store.mu guards it.
type stream struct {
	// watcher is that of the watch alone: a watch that etcd has not confirmed keeps others of
	// its watcher from being opened. nil: none is open.
	watcher clientv3.Watcher
	cancel  context.CancelFunc
	// news is when it was opened, or the mirror last got further.
	news time.Time
	// patience is how long a watch may have no news while some are waited for.
	patience time.Duration
	// stuck: the last one was ended because it had none.
	stuck bool
}

// The bounds of stream.patience. It doubles with each watch that had no news.
const leastPatience, mostPatience = 2 * time.Second, 8 * time.Second

// opened notes that a watch is open.
func (s *Store) opened(w clientv3.Watcher, cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream.watcher, s.stream.cancel, s.stream.news = w, cancel, time.Now()
	s.stream.patience = max(s.stream.patience, leastPatience)
}

// ended ends the watch, or notes that it has ended.
func (s *Store) ended() {
	s.mu.Lock()
	w := s.stream.watcher
	s.stream.cancel()
	s.stream.watcher = nil
	s.mu.Unlock()
	_ = w.Close() // there is nothing left to lose
}

// turn has a watch be opened at another member than one that was stuck.
func (s *Store) turn() {
	s.mu.Lock()
	stuck := s.stream.stuck
	s.stream.stuck = false
	s.mu.Unlock()
	if stuck {
		s.takeTurns()
	}
}

// takeTurns has the next request go to any of the members. They take turns by request, and
// one that is paused may have its turn whenever a request is repeated.
func (s *Store) takeTurns() {
	for range rand.IntN(len(s.options.Endpoints)) {
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Millisecond)
		_, _ = s.client.Get(ctx, s.layout.owner()) // it only takes a turn
		cancel()
	}
}

// unstick ends the watch if it has had no news for too long since something is waited for:
// the member that it is at is paused, cut off or far behind, and the next one is at another.
func (s *Store) unstick(waiting time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := waiting
	if s.stream.news.After(since) {
		since = s.stream.news
	}
	if s.stream.watcher == nil || time.Since(since) < s.stream.patience {
		return
	}
	s.stream.cancel()
	s.stream.stuck = true
	s.stream.news, s.stream.patience = time.Now(), min(2*s.stream.patience, mostPatience)
}

// watch applies the changes after those that the mirror has until it fails.
func (s *Store) watch() error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	w := s.base.watcher(s.client)
	s.opened(w, cancel)
	defer s.ended()
	from := s.reached.Load() + 1
	for resp := range w.Watch(ctx, string(s.layout), clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithCreatedNotify()) {
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
	if err := s.attestStream(); err != nil {
		return err
	}
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
	newest := events[len(events)-1]
	s.mu.Lock()
	s.last = witness{Key: string(newest.Kv.Key), At: rev, Deleted: newest.Type == clientv3.EventTypeDelete}
	s.mu.Unlock()
	s.advance(rev)
	return nil
}

// advance reports that the mirror has all changes up to a revision.
func (s *Store) advance(rev storage.Revision) {
	s.mirror.Advance(rev)
	if int64(rev) <= s.reached.Load() {
		return
	}
	s.reached.Store(int64(rev))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream.news, s.stream.patience = time.Now(), leastPatience
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
	if err := s.sameHistory(lineageOf(c.own[s.layout.terms()])); err != nil {
		return err
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
	began := time.Now()
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
		s.unstick(began)
		s.askProgress(ctx)
	}
	return nil
}

// askProgress has etcd send the revision up to which the watch has seen everything, for
// revisions that changed nothing in the prefix. It may be lost.
func (s *Store) askProgress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), time.Second)
	defer cancel()
	s.mu.Lock()
	w := s.stream.watcher
	s.mu.Unlock()
	if w != nil {
		_ = w.RequestProgress(ctx) // asked again
	}
}
