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
	// sending is what its last step asked for, until all of it is reported; nil:
	// nothing. The controller is not stepped meanwhile, but observes.
	sending *delivery
	// failed reports that a request of its last step failed. The next step waits for
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
		if m.sending != nil || m.failed && now.Before(m.again) {
			continue
		}
		requests := m.Step(view, now)
		if len(requests) == 0 {
			m.failed, m.delay = false, 0
			continue
		}
		acted = true
		m.sending = newDelivery(requests, r.send, r.endWait)
		if m.sending.start(ctx, turn) {
			r.conclude(m)
		}
	}
	return acted, nil
}

// collect concludes the deliveries that have ended.
func (r *Runner) collect() {
	for _, m := range r.controllers {
		if m.sending.ended() {
			r.conclude(m)
		}
	}
}

// conclude reports the outcomes of a delivery that has ended, in the order of its
// requests.
func (r *Runner) conclude(m *member) {
	d := m.sending
	m.sending, m.failed = nil, false
	for i, request := range d.requests {
		r.report(m, request, d.errs[i])
		m.failed = m.failed || d.errs[i] != nil
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
		if m.sending != nil {
			<-m.sending.done
			r.conclude(m)
		}
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
		idle = idle && m.sending == nil && !m.failed
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
		if m.Concerns(e) {
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

// wakes returns when a controller is to be stepped although nothing was written;
// the zero time for never.
func (m *member) wakes() time.Time {
	switch w, ok := m.Controller.(Waker); {
	case m.sending != nil:
		return time.Time{} // the end of its requests comes first
	case m.failed && m.again.IsZero():
		return time.Now()
	case m.failed:
		return m.again
	case ok:
		return w.Wake()
	}
	return time.Time{}
}
