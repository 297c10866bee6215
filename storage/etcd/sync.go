// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// reads are the questions for the newest revision, of which one answer serves all that
// came before it was asked.
type reads struct {
	mu      sync.Mutex
	reading bool
	next    *read
	// confirmed is when the last question was asked whose answer the mirror has reached.
	confirmed time.Time
	failed    error // the last answer; nil after a good one

	owner      string           // what the file of what was seen is about
	remembered storage.Revision // what it has
	marked     bool             // whether the file beside it says so
	unwritten  error            // why it could not be written the last time
}

// read is one question.
type read struct {
	done     chan struct{}
	began    time.Time
	revision storage.Revision
	err      error
}

// Sync implements [storage.Viewer].
func (s *Store) Sync(ctx context.Context, lag time.Duration) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.reads.within(lag) {
		return nil
	}
	r, err := s.ask()
	if err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.err != nil {
		return r.err
	}
	if err := s.reach(ctx, r.revision); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil { // what was reached may have been its end
		return err
	}
	s.reads.confirm(r.began)
	return nil
}

// within reports whether the mirror was confirmed within a time.
func (r *reads) within(lag time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lag > 0 && time.Since(r.confirmed) <= lag
}

func (r *reads) confirm(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began.After(r.confirmed) {
		r.confirmed = began
	}
}

// health returns an error if etcd has never answered, or not for a while, or if what was seen
// could not be written.
func (r *reads) health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch silent := time.Since(r.confirmed); {
	case r.unwritten != nil:
		return r.unwritten
	case r.confirmed.IsZero():
		return errors.New("etcd: the state was never confirmed")
	case silent > 2*requestTime:
		cause := r.failed
		if cause == nil {
			cause = errors.New("changes do not arrive")
		}
		return fmt.Errorf("etcd: the state was last confirmed %v ago: %w", silent.Round(time.Second), cause)
	}
	return nil
}

// ask returns a question that has not been asked yet.
func (s *Store) ask() (*read, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, storage.ErrClosed
	}
	q := &s.reads
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next = &read{done: make(chan struct{})}
	}
	r := q.next
	if !q.reading {
		q.reading = true
		s.running.Go(s.answer)
	}
	return r, nil
}

// answer asks until there is no further question.
func (s *Store) answer() {
	q := &s.reads
	for {
		q.mu.Lock()
		r := q.next
		q.next = nil
		if r == nil {
			q.reading = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		r.began = time.Now()
		r.revision, r.err = s.newest()
		q.mu.Lock()
		q.failed = r.err
		q.mu.Unlock()
		close(r.done)
		if r.err == nil && int64(r.revision) > s.reached.Load() {
			s.askProgress(s.ctx)
		}
	}
}

// newest asks etcd for its revision.
func (s *Store) newest() (storage.Revision, error) {
	before := s.seen()
	resp, err := s.getSoon(s.ctx, s.layout.terms())
	switch {
	case s.ctx.Err() != nil:
		return 0, storage.ErrClosed
	case err != nil:
		return 0, fmt.Errorf("etcd: ask %v for the revision: %w", s.options.Endpoints, err)
	case storage.Revision(resp.Header.Revision) < before.Revision:
		return 0, s.lose(fmt.Errorf("%w (it is %d, and %d was seen)", ErrRestored, resp.Header.Revision, before.Revision))
	}
	if len(resp.Kvs) > 0 {
		if err := before.Terms.check(before.Revision, lineageOf(resp.Kvs[0])); err != nil {
			return 0, s.lose(err)
		}
	}
	return storage.Revision(resp.Header.Revision), nil
}

// firstTry bounds the first attempt of a read, which is repeated at the next member: one
// that is paused does not answer.
const firstTry = requestTime / 50

// getSoon reads within requestTime, from another member if one does not answer.
func (s *Store) getSoon(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for try := firstTry; ; try *= 2 {
		within, cancel := context.WithTimeout(ctx, try)
		resp, err := s.client.Get(within, key, opts...)
		again := err != nil && within.Err() != nil && ctx.Err() == nil
		cancel()
		if !again {
			return resp, err
		}
	}
}

// sameHistory makes the store useless if a lineage is of another history than its mirror.
func (s *Store) sameHistory(other lineage) error {
	now := s.seen()
	if err := now.Terms.check(now.Revision, other); err != nil {
		return s.lose(err)
	}
	return nil
}

// watchOver confirms the mirror from time to time, for Health and for readers that accept a
// state of some seconds ago.
func (s *Store) watchOver() {
	for s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(s.ctx, requestTime)
		if err := s.Sync(ctx, requestTime/4); err == nil {
			if err := s.reads.write(s.options.RevisionFile, s.seen()); err != nil {
				s.options.Log.Error("a restored etcd would not be recognised by the next process", "err", err)
			}
		}
		cancel()
		s.pause(requestTime / 2)
	}
}
