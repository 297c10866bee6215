// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/controller"
)

// RunnableFunc is a function as a runnable of the leader.
type RunnableFunc func(ctx context.Context) error

// Start calls f.
func (f RunnableFunc) Start(ctx context.Context) error { return f(ctx) }

// OnEveryReplica makes r run on every replica, not on the leader alone.
func OnEveryReplica(r controller.Runnable) controller.LeaderElected { return everywhere{r} }

type everywhere struct{ controller.Runnable }

func (everywhere) NeedLeaderElection() bool { return false }

// The two sets of runnables.
const (
	leading = iota // need leadership
	always
)

// Add implements controller.Manager: r runs from the sync of the caches to the
// end, and only while this process leads unless it is a
// controller.LeaderElected that says otherwise. A running manager starts it at
// once, and one that is stopping or has stopped refuses it with [ErrStopping]. An
// error that it returns stops the whole manager.
func (m *Manager) Add(r controller.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return fmt.Errorf("manager: add %T: %w", r, ErrStopping)
	}
	if named, ok := r.(controller.Named); ok {
		name := named.Name()
		if m.names[name] {
			return fmt.Errorf("manager: add %s: the name is taken; name one of the two (controller.Name(\"...\"))", name)
		}
		m.names[name] = true
	}
	which := leading
	if e, ok := r.(controller.LeaderElected); ok && !e.NeedLeaderElection() {
		which = always
	}
	if l := m.live[which]; l != nil {
		return l.start(r)
	}
	m.parts[which] = append(m.parts[which], r)
	return nil
}

// launched is a set of runnables while it runs: the first that fails ends ctx.
type launched struct {
	ctx  context.Context // what is added later runs under the same context
	fail context.CancelCauseFunc
	*group
}

// launch starts a set of runnables, and lets Add start further ones in it.
func (m *Manager) launch(ctx context.Context, fail context.CancelCauseFunc, which int) *group {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &launched{ctx, fail, newGroup()}
	m.live[which] = l
	for _, r := range m.parts[which] {
		// A fresh group takes all.
		_ = l.start(r)
	}
	context.AfterFunc(ctx, l.seal)
	return l.group
}

func (l *launched) start(r controller.Runnable) error {
	name := fmt.Sprintf("%T", r)
	if named, ok := r.(controller.Named); ok {
		name = named.Name()
	}
	return l.run(name, func() {
		defer func() {
			if v := recover(); v != nil {
				l.fail(fmt.Errorf("manager: %s panicked: %v\n%s", name, v, debug.Stack()))
			}
		}()
		if err := r.Start(l.ctx); err != nil && (l.ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
			l.fail(fmt.Errorf("manager: %s: %w", name, err))
		}
	})
}

// group is a set of running functions that is waited for together.
type group struct {
	// ended is closed when all have returned, after seal.
	ended chan struct{}

	mu      sync.Mutex
	running []string
	sealed  bool
	// within is a group that a function of this one waits for; nil if none does.
	within *group
}

func newGroup() *group { return &group{ended: make(chan struct{})} }

// run starts f, unless the group is sealed.
func (g *group) run(name string, f func()) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealed {
		return fmt.Errorf("manager: start %s: %w", name, ErrStopping)
	}
	g.running = append(g.running, name)
	go func() {
		defer g.returned(name)
		f()
	}()
	return nil
}

func (g *group) returned(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.running, name)
	g.running = slices.Delete(g.running, i, i+1)
	g.closeIfEnded()
}

// seal refuses what comes later, so that the group can end. It is idempotent.
func (g *group) seal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealed {
		return
	}
	g.sealed = true
	g.closeIfEnded()
}

func (g *group) closeIfEnded() {
	if g.sealed && len(g.running) == 0 {
		close(g.ended)
	}
}

// waitsFor notes that a function of the group waits for another group.
func (g *group) waitsFor(within *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.within = within
}

// left are the names of what has not returned: of the group that is waited for, if
// something is left there.
func (g *group) left() []string {
	g.mu.Lock()
	running, within := slices.Clone(g.running), g.within
	g.mu.Unlock()
	if within != nil {
		if names := within.left(); len(names) > 0 {
			return names
		}
	}
	return running
}

// join waits for the end of all, or fails with what is still running when
// grace ends.
func (g *group) join(grace context.Context) error {
	select {
	case <-g.ended:
		return nil
	case <-grace.Done():
	}
	select {
	case <-g.ended: // at the same moment, or before
		return nil
	default:
		return fmt.Errorf("%w: %s", ErrStopTimeout, strings.Join(g.left(), ", "))
	}
}
