// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers remembers what another server has answered about credentials: reviews of
// tokens and of access. A client can ask with credentials that it has invented, so that what
// is asked at once and what is kept are bounded, and questions that were invented take no
// place from those with a good answer.
package answers

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy is the error of a question that is not asked because too many others wait.
var ErrBusy = errors.New("too many questions to the API server are under way: try again later")

// Bounds of a [Cache].
const (
	// asked is how many questions are asked at once, and renewed how many beside them whose
	// last answer was good.
	asked, renewed = 32, 32
	// waiting is how many questions wait for their turn, and turn how long.
	waiting = 256
	turn    = 10 * time.Second
	// renewable is how long after its end a good answer makes its question one to renew.
	renewable = 10 * time.Minute
)

// Answer is what was answered.
type Answer[V any] struct {
	Value V
	// Good reports that the credentials are real, or that the access is granted.
	Good bool
	// For is how long the answer is remembered.
	For time.Duration
}

// Cache remembers answers for a while. Callers that ask the same at once share one question.
// It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	// askers and renewers have a place for each question that is being asked.
	askers, renewers chan struct{}

	mu     sync.Mutex
	asking map[K]*question[V]
	queued int // questions of asking that are no renewals
	good   kept[K, V]
	others kept[K, V]
}

// question is one that is being asked.
type question[V any] struct {
	ready chan struct{}
	value V
	err   error
}

// New returns a cache that remembers so many good answers, and as many others.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{
		askers: make(chan struct{}, asked), renewers: make(chan struct{}, renewed), asking: map[K]*question[V]{},
		good: newKept[K, V](limit, renewable), others: newKept[K, V](limit, 0),
	}
}

// Get returns the answer that is remembered for a question, or asks it. Errors of ask are not
// remembered. It runs without the deadline of the caller, for whom others may wait too, and
// bounds its time itself. The error is [ErrBusy] if the question does not get its turn.
func (c *Cache[K, V]) Get(ctx context.Context, k K, ask func(context.Context) (Answer[V], error)) (V, error) {
	var none V
	now := time.Now()
	c.mu.Lock()
	for _, in := range []*kept[K, V]{&c.good, &c.others} {
		if value, ok := in.get(k, now); ok {
			c.mu.Unlock()
			return value, nil
		}
	}
	q, known := c.asking[k]
	if known {
		c.mu.Unlock()
		select {
		case <-q.ready:
			return q.value, q.err
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	renews := c.good.has(k)
	if !renews && c.queued >= asked+waiting {
		c.mu.Unlock()
		return none, ErrBusy
	}
	q = &question[V]{ready: make(chan struct{}), err: errors.New("the question was not answered")}
	c.asking[k] = q
	places := c.renewers
	if !renews {
		c.queued++
		places = c.askers
	}
	c.mu.Unlock()

	var answer Answer[V]
	defer func() { // also if ask panics
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asking, k)
		if !renews {
			c.queued--
		}
		if q.err == nil {
			c.keep(k, answer)
		}
		close(q.ready)
	}()
	answer, q.err = inTurn(context.WithoutCancel(ctx), places, ask)
	q.value = answer.Value
	return q.value, q.err
}

// inTurn asks once there is a place.
func inTurn[V any](ctx context.Context, places chan struct{}, ask func(context.Context) (Answer[V], error)) (Answer[V], error) {
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
	case <-timer.C:
		return Answer[V]{}, ErrBusy
	}
	defer func() { <-places }()
	return ask(ctx)
}

// keep remembers an answer in place of an older one; the cache is locked.
func (c *Cache[K, V]) keep(k K, a Answer[V]) {
	into, other := &c.others, &c.good
	if a.Good {
		into, other = other, into
	}
	other.remove(k)
	into.put(k, a.Value, time.Now(), a.For)
}

// kept are answers in the order in which they came.
type kept[K comparable, V any] struct {
	limit int
	// beyond is how long they are kept behind their end.
	beyond time.Duration
	of     map[K]*list.Element
	order  *list.List
}

// entry is one of them.
type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

func newKept[K comparable, V any](limit int, beyond time.Duration) kept[K, V] {
	return kept[K, V]{limit, beyond, map[K]*list.Element{}, list.New()}
}

func (s *kept[K, V]) has(k K) bool { return s.of[k] != nil }

func (s *kept[K, V]) get(k K, now time.Time) (value V, ok bool) {
	at := s.of[k]
	if at == nil {
		return value, false
	}
	e := at.Value.(*entry[K, V])
	return e.value, now.Before(e.until)
}

// put adds an answer, and removes the oldest if there are too many, and those whose time is
// over.
func (s *kept[K, V]) put(k K, value V, now time.Time, valid time.Duration) {
	s.remove(k)
	s.of[k] = s.order.PushBack(&entry[K, V]{k, value, now.Add(valid)})
	for first := s.order.Front(); first != nil; first = s.order.Front() {
		e := first.Value.(*entry[K, V])
		if s.order.Len() <= s.limit && now.Before(e.until.Add(s.beyond)) {
			return
		}
		s.remove(e.key)
	}
}

func (s *kept[K, V]) remove(k K) {
	if at := s.of[k]; at != nil {
		s.order.Remove(at)
		delete(s.of, k)
	}
}
