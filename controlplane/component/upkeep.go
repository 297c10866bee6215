// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// firstTryWithin bounds an attempt that something waits for.
	firstTryWithin = 5 * time.Second
	// tryWithin bounds the others: a webhook that does not answer may take 30 s.
	tryWithin = 40 * time.Second
	// againAfter is how long a task that has failed waits; each time it fails again it
	// waits twice as long, up to againAtMost.
	againAfter  = time.Second
	againAtMost = time.Minute
)

// Upkeep is what a control plane does for itself: its first objects, its address, what
// changes of others call for. A webhook, a policy or a full disk may refuse all of it. That
// decides nothing: it is logged and tried again, with back-off, while the plane serves. An
// Upkeep is safe for concurrent use.
type Upkeep struct {
	log *slog.Logger

	mu    sync.Mutex
	tasks []*task       // what has not succeeded, in the order in which it came
	added chan struct{} // has room for one: there is a task that Run may not know
}

// task is something that is to be done until it succeeds once.
type task struct {
	name string
	do   func(context.Context) error
	// next is when it is tried; it then waits for delay.
	next  time.Time
	delay time.Duration
}

// NewUpkeep returns an upkeep with nothing to do. nil: nothing is logged.
func NewUpkeep(log *slog.Logger) *Upkeep {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Upkeep{log: log, added: make(chan struct{}, 1)}
}

// Try does something now, for a few seconds at most, and has it done again if it fails. The
// name says in a log what is done; what was to be done under the same name is replaced. What
// is done must be idempotent, and ends when its context ends.
func (u *Upkeep) Try(ctx context.Context, name string, do func(context.Context) error) {
	within, cancel := context.WithTimeout(ctx, firstTryWithin)
	defer cancel()
	err := do(within)
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.replace(name, do)
	if err == nil {
		return
	}
	u.failed(ctx, t, err)
	u.add(t)
}

// Due has something done by [Upkeep.Run] or [Upkeep.Repeat], as [Upkeep.Try] does it.
func (u *Upkeep) Due(name string, do func(context.Context) error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(u.replace(name, do))
}

// replace takes out what was to be done under a name, and returns what takes its place; u.mu
// is held.
func (u *Upkeep) replace(name string, do func(context.Context) error) *task {
	u.tasks = slices.DeleteFunc(u.tasks, func(t *task) bool { return t.name == name })
	return &task{name: name, do: do, delay: againAfter}
}

// add appends a task; u.mu is held.
func (u *Upkeep) add(t *task) {
	u.tasks = append(u.tasks, t)
	select {
	case u.added <- struct{}{}:
	default:
	}
}

// failed has a task tried later; u.mu is held.
func (u *Upkeep) failed(ctx context.Context, t *task, err error) {
	if ctx.Err() == nil {
		u.log.Error("the control plane could not do something for itself, and tries again", "what", t.name, "after", t.delay, "err", err)
	}
	t.next, t.delay = time.Now().Add(t.delay), min(2*t.delay, againAtMost)
}

// Run tries what is left to do until ctx ends, one thing after the other.
func (u *Upkeep) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.added:
		case <-timer.C:
		}
		u.attempt(ctx, func(t *task) bool { return !t.next.After(time.Now()) })
		if next, ok := u.next(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// next returns when the next task is to be tried, if there is one.
func (u *Upkeep) next() (time.Time, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.tasks) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(u.tasks, func(a, b *task) int { return a.next.Compare(b.next) }).next, true
}

// Repeat tries everything that is left to do once, without waiting.
func (u *Upkeep) Repeat(ctx context.Context) { u.attempt(ctx, func(*task) bool { return true }) }

// attempt tries the tasks that are chosen.
func (u *Upkeep) attempt(ctx context.Context, chosen func(*task) bool) {
	u.mu.Lock()
	tasks := slices.DeleteFunc(slices.Clone(u.tasks), func(t *task) bool { return !chosen(t) })
	u.mu.Unlock()
	for _, t := range tasks {
		if ctx.Err() != nil {
			return
		}
		within, cancel := context.WithTimeout(ctx, tryWithin)
		err := t.do(within)
		cancel()
		u.mu.Lock()
		if err != nil {
			u.failed(ctx, t, err)
		} else {
			u.tasks = slices.DeleteFunc(u.tasks, func(other *task) bool { return other == t })
		}
		u.mu.Unlock()
	}
}
