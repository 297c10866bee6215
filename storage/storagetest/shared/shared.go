// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shared has a database in memory that several stores share, for tests of what runs
// on more than one server.
package shared

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Database is a database in memory with any number of stores, which see one another's
// writes as stores on one etcd do: revisions have gaps and are unknown before a write is
// committed, values are kept without them, several keys may change at one revision, and
// a write is acknowledged by the database before it arrives at the stores. Suites run on
// it what must not depend on a database of its own. It is safe for concurrent use.
type Database struct {
	mu       sync.Mutex
	rng      *rand.Rand
	revision storage.Revision
	modified map[storage.Key]storage.Revision // of what exists
	log      []transaction
	grown    chan struct{} // closed with the next transaction
	lease    lease
}

// transaction is what was written at one revision; nothing, if it is one of others.
type transaction struct {
	revision storage.Revision
	time     time.Time
	writes   []storage.Write
	leader   *storage.Leader // the new one; nil: as before
}

// New returns an empty database. The seed determines the gaps.
func New(seed uint64) *Database {
	return &Database{
		rng:      rand.New(rand.NewPCG(seed, 0)),
		modified: map[storage.Key]storage.Revision{},
		grown:    make(chan struct{}),
	}
}

// Open returns a store with the contents of the database. It has a goroutine, which its
// Close ends. With o.From, a state of this database, it does not know the history up to that.
func (d *Database) Open(o storage.MemoryOptions) *Store {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Store{
		db: d, mirror: storage.NewMirror(o), following: make(chan struct{}, 1), elected: make(chan struct{}),
		end: cancel, ended: make(chan struct{}),
	}
	s.from = s.mirror.Latest().Revision()
	n, grown := s.follow(0)
	go func() {
		defer close(s.ended)
		for {
			select {
			case <-grown:
				n, grown = s.follow(n)
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// append assigns a revision to writes; d.mu is held.
func (d *Database) append(writes ...storage.Write) storage.Revision {
	return d.record(transaction{writes: writes})
}

// record assigns a revision to a transaction; d.mu is held.
func (d *Database) record(t transaction) storage.Revision {
	for range d.rng.IntN(3) {
		d.revision++ // others' writes
		d.log = append(d.log, transaction{revision: d.revision, time: time.Now()})
	}
	d.revision += storage.Revision(1 + d.rng.IntN(2))
	t.revision, t.time = d.revision, time.Now()
	if t.leader != nil && t.leader.Identity != "" {
		t.leader.Term = d.revision
	}
	d.log = append(d.log, t)
	for _, w := range t.writes {
		if w.Value == nil {
			delete(d.modified, w.Key)
		} else {
			d.modified[w.Key] = d.revision
		}
	}
	close(d.grown)
	d.grown = make(chan struct{})
	return d.revision
}

// since returns the transactions from the n-th on, and a channel that closes when there
// are more.
func (d *Database) since(n int) ([]transaction, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log[n:], d.grown
}

// newest returns the newest revision that was acknowledged at a time.
func (d *Database) newest(at time.Time) storage.Revision {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range slices.Backward(d.log) {
		if !t.time.After(at) {
			return t.revision
		}
	}
	return 0
}

// commit makes a write if its expectations hold, and returns its revision. If they do
// not, it returns why, and the revision at which it found out.
func (d *Database) commit(w storage.Write) (storage.Revision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.check(w)
}

// check is commit; d.mu is held.
func (d *Database) check(w storage.Write) (storage.Revision, error) {
	if c := w.While; c != (storage.Condition{}) && d.modified[c.Key] != c.At {
		return d.revision, fmt.Errorf("%w: %s is at revision %d, not at %d", storage.ErrUnmet, c.Key, d.modified[c.Key], c.At)
	}
	found := d.modified[w.Key]
	if w.Expect != storage.AnyRevision && w.Expect != found || w.Value == nil && found == 0 {
		return d.revision, &storage.ConflictError{Key: w.Key, Expect: w.Expect, Current: &storage.Record{Key: w.Key, Modified: found}}
	}
	return d.append(w), nil
}

// Store is a store on a [Database] database.
type Store struct {
	db     *Database
	mirror *storage.Mirror
	from   storage.Revision // the state that mirror began with

	// following is full while transactions are applied, or kept from it: a lock that
	// synctest can wait for.
	following chan struct{}

	mu      sync.Mutex
	leader  storage.Leader // as of the transactions that have arrived
	elected chan struct{}  // closed when leader changes

	end   context.CancelFunc
	ended chan struct{}
}

// follow applies the transactions from the n-th on, and returns what since returned for
// the next ones.
func (s *Store) follow(n int) (int, <-chan struct{}) {
	s.following <- struct{}{}
	defer func() { <-s.following }()
	transactions, grown := s.db.since(n)
	for _, t := range transactions {
		s.follows(t.leader)
		if t.revision <= s.from {
			continue
		}
		var changes []storage.Change
		for _, w := range t.writes {
			changes = append(changes, storage.Change{Revision: t.revision, Time: t.time, Key: w.Key, Value: w.Stamped(t.revision), Stamp: w.Stamp})
		}
		if err := s.mirror.Apply(changes...); err != nil {
			panic(fmt.Sprintf("the database does not follow from itself: %v", err))
		}
		s.mirror.Advance(t.revision)
	}
	return n + len(transactions), grown
}

// follows notes a new leader; nil: there is none.
func (s *Store) follows(leader *storage.Leader) {
	if leader == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader = *leader
	close(s.elected)
	s.elected = make(chan struct{})
}

// Pause keeps writes from arriving at the store until resume is called, as if the
// connection to the database were slow: own commits and Sync wait as well.
func (s *Store) Pause() (resume func()) {
	s.following <- struct{}{}
	return func() { <-s.following }
}

// Commit implements [storage.Committer].
func (s *Store) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	rev, refused := s.db.commit(w)
	return s.outcome(ctx, w, rev, refused)
}

// outcome waits until the store has reached the revision of a write or of its refusal, and
// returns the record or the refusal.
func (s *Store) outcome(ctx context.Context, w storage.Write, rev storage.Revision, refused error) (*storage.Record, error) {
	if err := s.mirror.Wait(ctx, rev); err != nil {
		return nil, err
	}
	if conflict, ok := errors.AsType[*storage.ConflictError](refused); ok {
		found := conflict.Current.Modified
		if conflict.Current = nil; found > 0 {
			conflict.Current, _ = s.mirror.Written(w.Key, found)
		}
	}
	if refused != nil {
		return nil, refused
	}
	return s.mirror.Written(w.Key, rev)
}

// Transact implements [storagetest.Transactor].
func (s *Store) Transact(ctx context.Context, writes ...storage.Write) (storage.Revision, error) {
	s.db.mu.Lock()
	rev := s.db.append(writes...)
	s.db.mu.Unlock()
	return rev, s.mirror.Wait(ctx, rev)
}

// usable fails if ctx has ended or the store is closed.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.mirror.Wait(ctx, 0)
}

// Sync implements [storage.Viewer].
func (s *Store) Sync(ctx context.Context, lag time.Duration) error {
	return s.mirror.Wait(ctx, s.db.newest(time.Now().Add(-lag)))
}

// View implements [storage.Viewer].
func (s *Store) View(ctx context.Context, at storage.Revision) (storage.View, error) {
	if at == 0 {
		if err := s.Sync(ctx, 0); err != nil {
			return nil, err
		}
	}
	return s.mirror.View(at)
}

// Latest implements [storage.Viewer].
func (s *Store) Latest() storage.View { return s.mirror.Latest() }

// Get implements [storage.Viewer].
func (s *Store) Get(key storage.Key) *storage.Record { return s.mirror.Get(key) }

// LastModified implements [storage.Viewer].
func (s *Store) LastModified(buckets ...string) storage.Revision {
	return s.mirror.LastModified(buckets...)
}

// Watch implements [storage.Watcher].
func (s *Store) Watch(r storage.Range, after storage.Revision) (storage.Cursor, error) {
	return s.mirror.Watch(r, after)
}

// Compact implements [storage.Keeper].
func (s *Store) Compact(_ context.Context, below storage.Revision) error {
	return s.mirror.Compact(below)
}

// Health implements [storage.Keeper].
func (s *Store) Health() error { return s.mirror.Wait(context.Background(), 0) }

// Close implements [storage.Keeper].
func (s *Store) Close() error {
	s.end()
	<-s.ended
	s.mirror.Close()
	return nil
}
