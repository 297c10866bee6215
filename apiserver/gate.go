// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/auth"
)

// gate counts the requests under way and turns away those beyond the limits.
type gate struct {
	limits Limits

	mu      sync.Mutex
	closed  bool
	reads   int
	writes  int
	long    int
	watches map[string]int // by user
	idle    chan struct{}  // closed when the gate is closed and empty
}

func newGate(l Limits) *gate {
	return &gate{limits: l, watches: map[string]int{}, idle: make(chan struct{})}
}

// enter lets a request in and returns what it calls when it leaves. Masters are
// never turned away, so that an overloaded server can be repaired.
func (g *gate) enter(req *Request) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, apierrors.NewServiceUnavailable("the server is shutting down")
	}
	master := req.User.In(auth.Masters)
	if req.longRunning() {
		if req.Verb == "watch" {
			name := req.User.Name
			if g.limits.WatchesPerUser > 0 && g.watches[name] >= g.limits.WatchesPerUser {
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
	switch req.Verb {
	case "get", "list", "head":
		count, limit = &g.reads, g.limits.Reads
	}
	if limit > 0 && *count >= limit && !master {
		return nil, tooMany()
	}
	*count++
	return func() { g.leave(func() { *count-- }) }, nil
}

func tooMany() error {
	return apierrors.NewTooManyRequests("too many requests, please try again later", 1)
}

func (g *gate) leave(uncount func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uncount()
	g.settle()
}

// drain closes the gate and waits until everybody has left.
func (g *gate) drain(ctx context.Context) error {
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

func (g *gate) settle() {
	if !g.closed || g.reads+g.writes+g.long > 0 {
		return
	}
	select {
	case <-g.idle:
	default:
		close(g.idle)
	}
}

// counts returns the requests under way.
func (g *gate) counts() (reads, writes, long int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reads, g.writes, g.long
}
