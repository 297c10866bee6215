// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

	owner      string           // what the file of the revision is about
	remembered storage.Revision // what it has
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

// health returns an error if etcd has not answered for a while.
func (r *reads) health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if silent := time.Since(r.confirmed); !r.confirmed.IsZero() && silent > 2*requestTime {
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
	before, terms := s.history()
	resp, err := s.getTerms()
	switch {
	case s.ctx.Err() != nil:
		return 0, storage.ErrClosed
	case err != nil:
		return 0, fmt.Errorf("etcd: ask %v for the revision: %w", s.options.Endpoints, err)
	case storage.Revision(resp.Header.Revision) < before:
		return 0, s.lose(fmt.Errorf("%w (it is %d, and %d was seen)", ErrRestored, resp.Header.Revision, before))
	}
	if len(resp.Kvs) > 0 {
		if err := terms.check(before, lineageOf(resp.Kvs[0])); err != nil {
			return 0, s.lose(err)
		}
	}
	return storage.Revision(resp.Header.Revision), nil
}

// firstTry bounds the first attempt of a read, which is repeated at the next member: one
// that is paused does not answer.
const firstTry = requestTime / 50

// getTerms reads the key of the terms, and the newest revision with it.
func (s *Store) getTerms() (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(s.ctx, requestTime)
	defer cancel()
	for try := firstTry; ; try *= 2 {
		within, cancel := context.WithTimeout(ctx, try)
		resp, err := s.client.Get(within, s.layout.terms())
		again := err != nil && within.Err() != nil && ctx.Err() == nil
		cancel()
		if !again {
			return resp, err
		}
	}
}

// history returns the revision that the mirror has reached, and the terms up to it; later
// ones may be among them.
func (s *Store) history() (storage.Revision, lineage) {
	reached := storage.Revision(s.reached.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	return reached, s.leading.terms
}

// sameHistory makes the store useless if a lineage is of another history than its mirror.
func (s *Store) sameHistory(other lineage) error {
	reached, terms := s.history()
	if err := terms.check(reached, other); err != nil {
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
			s.reads.write(s.options.RevisionFile, s.history)
		}
		cancel()
		s.pause(requestTime / 2)
	}
}

// seen is the content of the file of the revision.
type seen struct {
	Owner    string           `json:"owner"`
	Terms    lineage          `json:"terms"`
	Revision storage.Revision `json:"revision"`
}

// remember begins to keep the revision in a file. It fails with [ErrRestored] if the file
// has a newer one of the same owner, or if the terms are those of another history.
func (r *reads) remember(file, owner string, now storage.Revision, terms lineage) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("etcd: read the last revision: %w", err)
	}
	var old seen
	if err == nil && json.Unmarshal(text, &old) == nil && old.Owner == owner {
		err := old.Terms.check(old.Revision, terms)
		if old.Revision > now {
			err = fmt.Errorf("%w (it is %d, and %d was seen)", ErrRestored, now, old.Revision)
		}
		if err != nil {
			return fmt.Errorf("%w; to go on with what there is, remove %s", err, file)
		}
	}
	r.mu.Lock()
	r.owner = owner
	r.mu.Unlock()
	return nil
}

// write writes the file of the revision. A revision that could not be written is written
// the next time.
func (r *reads) write(file string, history func() (storage.Revision, lineage)) {
	now, terms := history()
	r.mu.Lock()
	defer r.mu.Unlock()
	if file == "" || now <= r.remembered {
		return
	}
	text, err := json.Marshal(seen{Owner: r.owner, Terms: terms, Revision: now})
	if err == nil {
		err = os.WriteFile(file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err == nil {
		r.remembered = now
	}
}
