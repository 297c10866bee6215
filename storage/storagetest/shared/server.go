// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// LeaseTime is how long the leader of a [Database] database keeps leading without renewing
// its lease, which it does every third of it.
const LeaseTime = 30 * time.Second

// lease is the right to lead a [Database] database. The zero value is that of no one.
type lease struct {
	leader  storage.Leader
	expires time.Time
}

// held reports whether a term has not ended.
func (l *lease) held() bool { return l.leader.Term != 0 && time.Now().Before(l.expires) }

// acquire makes a member the leader and returns the revision of its term, or 0 and when
// the lease of another runs out.
func (d *Database) acquire(as storage.Member) (storage.Revision, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease.held() {
		return 0, d.lease.expires
	}
	leader := &storage.Leader{Member: as}
	if leader.Identity == "" {
		panic("storagetest: a member needs an identity")
	}
	d.record(transaction{leader: leader})
	d.lease = lease{leader: *leader, expires: time.Now().Add(LeaseTime)}
	return leader.Term, time.Time{}
}

// renew extends the lease of a term, and reports whether it has not ended.
func (d *Database) renew(term storage.Revision) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease.leader.Term != term || !d.lease.held() {
		return false
	}
	d.lease.expires = time.Now().Add(LeaseTime)
	return true
}

// release ends a term, if it has not ended.
func (d *Database) release(term storage.Revision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease.leader.Term != term {
		return
	}
	d.lease = lease{}
	d.record(transaction{leader: &storage.Leader{}})
}

// expire ends the term of the leader as if its lease had run out.
func (d *Database) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lease.expires = time.Time{}
	close(d.grown) // campaigns try again
	d.grown = make(chan struct{})
}

// commitIn makes a write as commit does if the term has not ended.
func (d *Database) commitIn(term storage.Revision, w storage.Write) (storage.Revision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease.leader.Term != term || !d.lease.held() {
		return 0, storage.ErrNotLeader
	}
	return d.check(w)
}

// OpenServer returns a store with the contents of the database that writes while it leads.
func (d *Database) OpenServer(o storage.MemoryOptions) *Server {
	return &Server{Store: d.Open(o)}
}

// Server is a store on a [Database] database that has to lead it to write.
type Server struct {
	*Store

	leading sync.Mutex     // guards term and frozen
	term    *term          // the newest; nil: none so far
	frozen  chan struct{}  // closed to thaw; nil: not frozen
	keeping sync.WaitGroup // the goroutines that renew leases
}

// Campaign implements [storage.Elector].
func (s *Server) Campaign(ctx context.Context, as storage.Member) (storage.Term, error) {
	for {
		if err := s.usable(ctx); err != nil {
			return nil, err
		}
		_, grown := s.db.since(0)
		var rev storage.Revision
		var until time.Time
		if err := s.awake(ctx, func() { rev, until = s.db.acquire(as) }); err != nil {
			return nil, err
		}
		if rev > 0 {
			return s.begin(ctx, rev)
		}
		wait := time.NewTimer(time.Until(until))
		select {
		case <-wait.C:
		case <-grown: // the leader may have resigned
		case <-s.ended:
		case <-ctx.Done():
		}
		wait.Stop()
	}
}

// begin returns the term of a new leader once the store has what was written before it.
func (s *Server) begin(ctx context.Context, rev storage.Revision) (storage.Term, error) {
	t := &term{server: s, revision: rev, done: make(chan struct{})}
	if err := s.mirror.Wait(ctx, rev); err != nil {
		s.db.release(rev)
		return nil, err
	}
	s.leading.Lock()
	s.term = t
	s.leading.Unlock()
	s.keeping.Go(t.keep)
	return t, nil
}

// Leader implements [storage.Elector].
func (s *Server) Leader() (storage.Leader, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader, s.elected
}

// Commit implements [storage.Committer].
func (s *Server) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var t *term
	var rev storage.Revision
	var refused error
	err := s.awake(ctx, func() {
		if t = s.term; t != nil {
			rev, refused = s.db.commitIn(t.revision, w)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, storage.ErrNotLeader
	case rev == 0:
		t.end()
		return nil, refused
	}
	return s.outcome(ctx, w, rev, refused)
}

// awake has f reach the database, once the store is not frozen; s.leading is held meanwhile.
func (s *Server) awake(ctx context.Context, f func()) error {
	for {
		s.leading.Lock()
		frozen := s.frozen
		if frozen == nil {
			f()
		}
		s.leading.Unlock()
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// current returns the newest term, nil if there was none.
func (s *Server) current() *term {
	s.leading.Lock()
	defer s.leading.Unlock()
	return s.term
}

// Freeze keeps the store from renewing its lease, from campaigning, writing and receiving
// writes until thaw is called, as if its process were paused. Its clock goes on.
func (s *Server) Freeze() (thaw func()) {
	resume := s.Pause()
	s.leading.Lock()
	defer s.leading.Unlock()
	s.frozen = make(chan struct{})
	return func() {
		resume()
		s.leading.Lock()
		defer s.leading.Unlock()
		close(s.frozen)
		s.frozen = nil
	}
}

// Expire ends the term of the leader in the database before its store knows of it.
func (s *Server) Expire() { s.db.expire() }

// Close implements [storage.Keeper]: it ends the term as well.
func (s *Server) Close() error {
	if t := s.current(); t != nil {
		s.db.release(t.revision)
		t.end()
	}
	s.keeping.Wait()
	return s.Store.Close()
}

// term implements [storage.Term].
type term struct {
	server   *Server
	revision storage.Revision
	done     chan struct{}
	ending   sync.Once
}

// keep renews the lease until the term ends.
func (t *term) keep() {
	tick := time.NewTicker(LeaseTime / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-t.done:
			return
		}
		t.server.leading.Lock()
		frozen := t.server.frozen
		t.server.leading.Unlock()
		if frozen != nil {
			select {
			case <-frozen:
			case <-t.done:
				return
			}
		}
		if !t.server.db.renew(t.revision) {
			t.end()
			return
		}
	}
}

func (t *term) end() { t.ending.Do(func() { close(t.done) }) }

// Revision implements [storage.Term].
func (t *term) Revision() storage.Revision { return t.revision }

// Done implements [storage.Term].
func (t *term) Done() <-chan struct{} { return t.done }

// Resign implements [storage.Term].
func (t *term) Resign(context.Context) error {
	t.server.db.release(t.revision)
	t.end()
	return nil
}
