// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// leading is what the store knows of the leader; Store.mu guards it.
type leading struct {
	leader  storage.Leader
	elected chan struct{} // closed when leader changes
	// held is whether the key of the leader exists.
	held    bool
	changed chan struct{} // closed when held may have changed
	term    *term         // the newest of this store; nil: none so far
	terms   lineage
}

// note takes over what a revision changed of the keys of the store itself; nil values are
// deletions.
func (s *Store) note(rev storage.Revision, own map[string][]byte) {
	if len(own) == 0 {
		return
	}
	if _, ok := own[s.layout.owner()]; ok {
		_ = s.lose(ErrReplaced) // it is what every later call returns
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := own[s.layout.leader()]; ok {
		s.hold(rev, value)
	}
	if value := own[s.layout.resigned()]; value != nil && s.hasResigned(value) {
		s.elect(storage.Leader{})
	}
	if value := own[s.layout.clock()]; value != nil {
		s.tick(rev, value)
	}
	if value := own[s.layout.terms()]; value != nil {
		s.leading.terms = lineageAt(value, rev)
	}
}

// hasResigned reports whether the leader that is known is the one of the key of the last one
// that resigned; s.mu is held.
func (s *Store) hasResigned(value []byte) bool {
	return string(value) == strconv.FormatInt(int64(s.leading.leader.Term), 10)
}

// adopt takes over the keys of the store itself of a state.
func (s *Store) adopt(c *content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = c.last
	if kv := c.own[s.layout.clock()]; kv != nil {
		s.tick(storage.Revision(kv.ModRevision), kv.Value)
	}
	s.leading.terms = lineageOf(c.own[s.layout.terms()])
	kv := c.own[s.layout.leader()]
	if kv == nil {
		s.hold(c.revision, nil)
		if last := c.own[s.layout.resigned()]; last != nil && s.hasResigned(last.Value) {
			s.elect(storage.Leader{})
		}
		return
	}
	s.hold(storage.Revision(kv.CreateRevision), kv.Value)
}

// hold notes the holder of the key of the leader; s.mu is held.
func (s *Store) hold(rev storage.Revision, value []byte) {
	l := &s.leading
	l.held = value != nil
	if t := l.term; t != nil && (!l.held && rev > t.revision || l.held && rev != t.revision) {
		t.finish()
	}
	close(l.changed)
	l.changed = make(chan struct{})
	if l.held && rev != l.leader.Term {
		leader := storage.Leader{Term: rev}
		_ = json.Unmarshal(value, &leader.Member) // a member without a name leads all the same
		s.elect(leader)
	}
}

// elect notes a leader; s.mu is held.
func (s *Store) elect(leader storage.Leader) {
	s.leading.leader = leader
	close(s.leading.elected)
	s.leading.elected = make(chan struct{})
}

// Leader implements [storage.Elector].
func (s *Store) Leader() (storage.Leader, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leading.leader, s.leading.elected
}

// current returns the term of this store; nil: it does not lead.
func (s *Store) current() *term {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.leading.term
	if t == nil || t.ended() {
		return nil
	}
	return t
}

// Campaign implements [storage.Elector].
func (s *Store) Campaign(ctx context.Context, as storage.Member) (storage.Term, error) {
	if as.Identity == "" {
		return nil, fmt.Errorf("%w: a member needs an identity", storage.ErrInvalid)
	}
	for {
		if err := s.usable(ctx); err != nil {
			return nil, err
		}
		s.mu.Lock()
		held, changed := s.leading.held, s.leading.changed
		s.mu.Unlock()
		again := time.Duration(math.MaxInt64)
		if !held {
			t, err := s.attempt(ctx, as)
			switch {
			case t != nil:
				return t, nil
			case err == nil:
				continue
			}
			again = retryAfter
		}
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-s.ctx.Done():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// attempt returns the term if there was no leader. If there was one the store knows it.
func (s *Store) attempt(ctx context.Context, as storage.Member) (*term, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	began := time.Now()
	grant, err := s.client.Grant(ctx, int64(math.Ceil(s.options.LeaseTime.Seconds())))
	if err != nil {
		return nil, err
	}
	value, err := json.Marshal(as)
	if err != nil {
		return nil, err
	}
	terms := s.seen().Terms
	text, err := terms.next(grant.ID)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Txn(ctx).
		If(
			clientv3.Compare(clientv3.CreateRevision(s.layout.leader()), "=", 0),
			clientv3.Compare(clientv3.ModRevision(s.layout.terms()), "=", int64(terms.newest())),
		).
		Then(
			clientv3.OpPut(s.layout.leader(), string(value), clientv3.WithLease(grant.ID)),
			clientv3.OpPut(s.layout.terms(), text),
		).Commit()
	if err != nil || !resp.Succeeded {
		// After an error the transaction may have succeeded.
		s.revoke(grant.ID)
		if err == nil {
			err = s.reach(ctx, storage.Revision(resp.Header.Revision))
		}
		return nil, err
	}
	t := &term{
		store: s, revision: storage.Revision(resp.Header.Revision), lease: grant.ID,
		life: time.Duration(grant.TTL) * time.Second, done: make(chan struct{}),
	}
	t.until = began.Add(t.life)
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.running.Go(t.keep)
	}
	s.mu.Unlock()
	if closed {
		s.revoke(grant.ID)
		return nil, storage.ErrClosed
	}
	// The clock is before the first write of the term.
	if err := s.reach(ctx, max(t.revision, s.keepTime(t))); err != nil {
		t.finish()
		s.revoke(grant.ID)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leading.term = t
	if s.closed || s.leading.leader.Term != t.revision || !s.leading.held {
		t.finish() // it has ended already
	}
	return t, nil
}

// revoke ends a lease, or lets it run out.
func (s *Store) revoke(lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(s.ctx, requestTime)
	defer cancel()
	_, _ = s.client.Revoke(ctx, lease) // it runs out
}

// term implements [storage.Term].
type term struct {
	store    *Store
	revision storage.Revision
	lease    clientv3.LeaseID
	life     time.Duration // of the lease
	until    time.Time     // when it runs out at the earliest; used by keep alone
	done     chan struct{}
	ending   sync.Once

	resigning sync.Mutex
	resigned  bool
}

// Revision implements [storage.Term].
func (t *term) Revision() storage.Revision { return t.revision }

// Done implements [storage.Term].
func (t *term) Done() <-chan struct{} { return t.done }

func (t *term) finish() { t.ending.Do(func() { close(t.done) }) }

func (t *term) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Resign implements [storage.Term].
func (t *term) Resign(ctx context.Context) error {
	t.finish()
	t.resigning.Lock()
	defer t.resigning.Unlock()
	if t.resigned {
		return nil
	}
	s := t.store
	_, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.layout.leader()), "=", int64(t.revision))).
		Then(
			clientv3.OpDelete(s.layout.leader()),
			clientv3.OpPut(s.layout.resigned(), strconv.FormatInt(int64(t.revision), 10)),
		).Commit()
	if err != nil {
		return fmt.Errorf("etcd: resign: %w", err)
	}
	t.resigned = true
	_, _ = s.client.Revoke(ctx, t.lease) // nothing has it any more: it runs out
	return nil
}

// keep renews the lease until the term ends, and the clock of the history with it.
func (t *term) keep() {
	defer t.finish()
	for {
		left := time.Until(t.until) - t.life/10
		if left <= 0 {
			return
		}
		timer := time.NewTimer(min(left, t.life/3))
		select {
		case <-timer.C:
		case <-t.done:
		case <-t.store.ctx.Done():
		}
		timer.Stop()
		if t.ended() || t.store.ctx.Err() != nil || !t.renew() {
			return
		}
		t.store.keepTime(t)
	}
}

// renew extends the lease, and reports whether the term goes on.
func (t *term) renew() bool {
	for !t.ended() {
		sent := time.Now()
		left := t.until.Sub(sent) - t.life/10
		if left <= 0 {
			return false
		}
		ctx, cancel := context.WithTimeout(t.store.ctx, min(left, t.life/10))
		resp, err := t.store.client.KeepAliveOnce(ctx, t.lease)
		cancel()
		switch {
		case err == nil:
			t.until = sent.Add(time.Duration(resp.TTL) * time.Second)
			return true
		case errors.Is(err, rpctypes.ErrLeaseNotFound) || t.store.ctx.Err() != nil:
			return false
		}
		t.store.pause(min(retryAfter, t.life/10))
		t.store.takeTurns()
	}
	return false
}
