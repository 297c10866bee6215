// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Delays between tries of a controller while its requests fail.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// turn is how long the other controllers wait for the requests of one. Requests
// that are answered within it are sent in one order, which depends on nothing but
// what is stored; a request that is not, such as one that an admission webhook
// holds back, goes on beside everything else.
const turn = 10 * time.Millisecond

// member is a controller with what is under way for it.
type member struct {
	Controller
	// out holds what its steps asked for, until that is reported. Unless the controller is
	// pipelined, it is not stepped meanwhile, but observes.
	out       *outbox
	pipelined bool
	// failed reports that a request that was reported last failed. The next step waits for
	// delay, until again, or for anything to be written.
	failed bool
	delay  time.Duration
	again  time.Time
}

// Run advances until ctx ends, whenever a write concerns a controller. When it
// returns, no request is under way.
func (r *Runner) Run(ctx context.Context) error {
	defer r.join()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for ctx.Err() == nil {
		acted, err := r.round(ctx)
		switch {
		case err != nil && !errors.Is(err, storage.ErrClosed):
			r.log.Error("the built-in controllers cannot read the store", "err", err)
			return err
		case err != nil:
			return err
		case !acted:
			r.wait(ctx)
		}
	}
	return nil
}

// round steps every controller that waits for nothing, and reports whether one of them
// asked for a request.
func (r *Runner) round(ctx context.Context) (acted bool, err error) {
	r.mu.Lock()
	r.signal = false // this round is the look that it asked for
	r.mu.Unlock()
	r.collect() // before what was written is observed: the next step is to see it
	view, err := r.view(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range r.controllers {
		now := time.Now()
		if m.waits(now) {
			continue
		}
		requests := m.Sync(view, now)
		if len(requests) == 0 {
			m.failed, m.delay = false, 0
			continue
		}
		acted = true
		m.out.deliver(ctx, requests, turn)
		r.conclude(m)
	}
	return acted, nil
}

// collect reports the outcomes that are known by now.
func (r *Runner) collect() {
	for _, m := range r.controllers {
		r.conclude(m)
	}
}

// conclude reports the outcomes of requests that have ended, in the order of the
// requests.
func (r *Runner) conclude(m *member) {
	calls := m.out.collect()
	if len(calls) == 0 {
		return
	}
	m.failed = false
	for _, c := range calls {
		r.report(m, c.request, c.err)
		m.failed = m.failed || c.err != nil
	}
	if !m.failed {
		m.delay = 0
		return
	}
	m.delay = min(max(2*m.delay, firstRetry), lastRetry)
	m.again = time.Now().Add(m.delay)
}

// join waits for the requests under way. Their context has ended.
func (r *Runner) join() {
	for _, m := range r.controllers {
		m.out.wait()
		r.conclude(m)
	}
}

// wait waits until there may be something to do.
func (r *Runner) wait(ctx context.Context) {
	limit, due := r.untilWake()
	if due {
		return
	}
	idle := true
	r.failed = false
	for _, m := range r.controllers {
		idle = idle && m.out.empty() && !m.failed
		r.failed = r.failed || m.failed
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	if !r.begin(wake, idle) {
		return
	}
	batch, err := r.cursor.Next(ctx)
	if err != nil {
		return // the next round meets the same error, unless it was ctx
	}
	r.observe(batch)
}

// begin notes what ends a waiting, and whether nothing is left to do. It returns false
// if there is a reason to look again already.
func (r *Runner) begin(wake func(), idle bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.signal {
		return false
	}
	r.wake = wake
	if !idle {
		return true
	}
	r.idleAt = r.at
	if r.rested != nil {
		close(r.rested)
		r.rested = nil
	}
	return true
}

// endWait makes Run look again: now if it waits, else before it waits the next time.
func (r *Runner) endWait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal = true
	if r.wake != nil {
		r.wake()
	}
}

// concerns reports whether a write ends the waiting. After a failure any one does: it
// may be what was missing.
func (r *Runner) concerns(e storage.Event) bool {
	if r.failed {
		return true
	}
	for _, m := range r.controllers {
		if m.Filter(e) {
			return true
		}
	}
	return false
}

// Idle waits until Run has nothing left to do with what was written up to a
// revision: no request is under way, and none has failed and is yet to be tried
// again. It may be called beside Run.
func (r *Runner) Idle(ctx context.Context, at storage.Revision) error {
	for {
		r.mu.Lock()
		if r.idleAt >= at {
			r.mu.Unlock()
			return nil
		}
		if r.rested == nil {
			r.rested = make(chan struct{})
		}
		if r.wake != nil {
			r.wake() // what was written may have concerned no controller
		}
		rested := r.rested
		r.mu.Unlock()
		select {
		case <-rested:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Due returns how long until a controller is to be stepped although nothing was written;
// false for never.
func (r *Runner) Due() (time.Duration, bool) {
	limit, due := r.untilWake()
	return limit, due || limit > 0
}

// untilWake returns how long until a controller is to be stepped although nothing
// was written, 0 if none is; due reports that the time has come.
func (r *Runner) untilWake() (limit time.Duration, due bool) {
	for _, m := range r.controllers {
		at := m.wakes()
		if at.IsZero() {
			continue
		}
		left := time.Until(at)
		if left <= 0 {
			return 0, true
		}
		if limit == 0 || left < limit {
			limit = left
		}
	}
	return limit, false
}

// waits reports whether a controller is not stepped now: its last step is not reported in
// full, or what failed is not tried again yet.
func (m *member) waits(now time.Time) bool {
	if !m.pipelined && !m.out.empty() {
		return true
	}
	if !m.failed || !now.Before(m.again) {
		return false
	}
	at := m.wakes()
	return at.IsZero() || now.Before(at)
}

// wakes returns when a controller is to be stepped although nothing was written;
// the zero time for never. Requests that failed delay a pipelined controller in nothing else.
func (m *member) wakes() time.Time {
	w, wakes := m.Controller.(Waker)
	switch {
	case !m.pipelined && !m.out.empty():
		return time.Time{} // the end of its requests comes first
	case m.failed && m.again.IsZero():
		return time.Now()
	case m.failed && m.pipelined && wakes:
		if at := w.Wake(); !at.IsZero() && at.Before(m.again) {
			return at
		}
		return m.again
	case m.failed:
		return m.again
	case wakes:
		return w.Wake()
	}
	return time.Time{}
}
