// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/rand"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// create commits a write that expects no key. A key that is absent may have been created by an
// attempt whose answer was lost, and deleted since: another attempt would bring it back. So
// each attempt is made only while a key of its own is absent. Before the next one that key is
// put, after which the attempt was made or never will be, and the history says which.
func (s *Store) create(ctx context.Context, t *term, w *storage.Write) (*storage.Record, error) {
	before := storage.Revision(s.reached.Load())
	for try := firstCommit; ; try *= 2 {
		attempt := s.layout.attempt(rand.Text())
		conditions := append(s.conditions(t, w), clientv3.Compare(clientv3.CreateRevision(attempt), "=", 0))
		within, cancel := context.WithTimeout(ctx, try)
		resp, err := s.client.Txn(within).If(conditions...).Then(s.change(w)).Else(s.found(w)...).Commit()
		open := err != nil && s.isOpen(ctx, within, err)
		cancel()
		switch {
		case err == nil:
			return s.outcome(ctx, t, w, resp)
		case !open:
			return nil, s.failure(ctx, w.Key, err)
		}
		rec, err := s.withdraw(ctx, t, w, attempt, before)
		if rec != nil || err != nil {
			return rec, err
		}
	}
}

// withdraw keeps an attempt from being made, unless it was: then it returns the record, which
// may have been deleted since.
func (s *Store) withdraw(ctx context.Context, t *term, w *storage.Write, attempt string, before storage.Revision) (*storage.Record, error) {
	put, err := s.putAttempt(ctx, t, attempt)
	if err != nil {
		return nil, s.failure(ctx, w.Key, fmt.Errorf("whether it was made is unknown: %w", err))
	}
	if err := s.reach(ctx, storage.Revision(put.Header.Revision)); err != nil {
		return nil, err
	}
	events, err := s.since(w.Key, before)
	for _, e := range events {
		if e.Previous == nil && isOf(w, e) {
			return e.Record, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("etcd: write %s: whether it was made is unknown: %w", w.Key, err)
	}
	return nil, nil // it was not made
}

// putAttempt puts the key of an attempt, which goes with the lease of the term: after the term
// no attempt of it is made. It is tried until etcd answers.
func (s *Store) putAttempt(ctx context.Context, t *term, attempt string) (*clientv3.PutResponse, error) {
	for try := firstCommit; ; try *= 2 {
		s.pause(retryAfter / 10)
		s.takeTurns()
		within, cancel := context.WithTimeout(ctx, try)
		resp, err := s.client.Put(within, attempt, "", clientv3.WithLease(t.lease))
		open := err != nil && s.isOpen(ctx, within, err)
		cancel()
		if !open {
			return resp, err
		}
	}
}
