// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits of a [Gate]; 0 is none.
type Limits struct {
	Reads, Writes int
	// Watches of one user.
	Watches int
}

// Passage describes a request to a gate.
type Passage struct {
	User string
	// Exempt requests are never refused, except watches beyond the limit per user.
	Exempt bool
	// Read distinguishes reads from writes.
	Read bool
	// Long requests count as neither; Watch is one of them.
	Long, Watch bool
}

// Gate counts the requests in flight and refuses those beyond the limits.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	closed  bool
	reads   int
	writes  int
	long    int
	watches map[string]int // by user
	idle    chan struct{}  // closed when the gate is closed and empty
}

// NewGate returns an open gate.
func NewGate(l Limits) *Gate {
	return &Gate{limits: l, watches: map[string]int{}, idle: make(chan struct{})}
}

// Enter admits a request and returns the function to call when it ends. Members of
// system:masters are never refused, so that an overloaded server can be repaired.
func (g *Gate) Enter(p Passage) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, apierrors.NewServiceUnavailable("the server is shutting down")
	}
	if p.Long {
		if p.Watch {
			name := p.User
			if g.limits.Watches > 0 && g.watches[name] >= g.limits.Watches {
				return nil, tooMany()
			}
			g.watches[name]++
			g.long++
			return func() {
				g.leave(func() {
					g.long--
					if g.watches[name]--; g.watches[name] == 0 {
						delete(g.watches, name)
					}
				})
			}, nil
		}
		g.long++
		return func() { g.leave(func() { g.long-- }) }, nil
	}
	count, limit := &g.writes, g.limits.Writes
	if p.Read {
		count, limit = &g.reads, g.limits.Reads
	}
	if limit > 0 && *count >= limit && !p.Exempt {
		return nil, tooMany()
	}
	*count++
	return func() { g.leave(func() { *count-- }) }, nil
}

func tooMany() error {
	return apierrors.NewTooManyRequests("too many requests, please try again later", 1)
}

func (g *Gate) leave(uncount func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uncount()
	g.settle()
}

// Drain closes the gate and waits until no request is in flight.
func (g *Gate) Drain(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		g.settle()
	}
	g.mu.Unlock()
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Gate) settle() {
	if !g.closed || g.reads+g.writes+g.long > 0 {
		return
	}
	select {
	case <-g.idle:
	default:
		close(g.idle)
	}
}

// Counts returns the numbers of requests in flight.
func (g *Gate) Counts() (reads, writes, long int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reads, g.writes, g.long
}
