// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits of a [MaxInFlight]; 0 is none.
type Limits struct {
	Reads, Writes int
	// Watches of one user.
	Watches int
	// Connections are the long requests that are no watches, and UserConnections those of
	// one user.
	Connections, UserConnections int
	// UserWaiting and ConnectionWaiting are the requests that have not come to a slot yet,
	// of one user and of one connection.
	UserWaiting, ConnectionWaiting int
	// Rule divides reads and writes among users. nil: [EqualShares].
	Rule Rule
}

// Rule decides whether a user gets one more of the slots for reads or for writes. It is
// asked for ordinary requests, with MaxInFlight locked. What priority and fairness is to
// replace is the rule: the other lanes do not depend on it.
type Rule func(p RequestDigest, use Use) bool

// Use is how many slots of a kind are taken: by the user of the request, and by all ordinary
// requests, of a limit.
type Use struct{ Held, Taken, Limit int }

// EqualShares lets a user hold as many slots as are left free, and always one: a user
// alone has half of them, two have a third each, and someone who comes later finds a
// slot while there are fewer users than slots.
func EqualShares(_ RequestDigest, use Use) bool {
	free := use.Limit - use.Taken - 1 // if this request is let in
	return free >= 0 && (use.Held == 0 || use.Held+1 <= free)
}

// Lane separates requests that are counted apart: those of one lane take no slots of
// another.
type Lane int

const (
	// Ordinary requests keep to the limits and to the rule.
	Ordinary Lane = iota
	// Exempt are the requests of members of system:masters, who are to be able to repair
	// an overloaded server. Only the limit of watches holds for them.
	Exempt
	// Reserved are the requests that the server sends to itself: its controllers, and
	// parts of requests under way. They are as many as its parts send, and none is refused.
	Reserved
	// Probe are health checks, which are refused nobody.
	Probe
	lanes
)

// RequestDigest is what MaxInFlight knows of a request.
type RequestDigest struct {
	User string
	Lane Lane
	// Read distinguishes reads from writes.
	Read bool
	// Long requests count as neither; Watch is one of them.
	Long, Watch bool
	// Connection that it came over; nil if that is not known.
	Connection *Connection
}

// Connection counts the requests of one connection before they have a slot.
type Connection struct{ waiting int } // guarded by MaxInFlight

type connectionKey struct{}

// WithConnection attaches a new connection to the context of its requests.
func WithConnection(ctx context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, &Connection{})
}

// ConnectionFrom returns the connection of a request, or nil.
func ConnectionFrom(ctx context.Context) *Connection {
	c, _ := ctx.Value(connectionKey{}).(*Connection)
	return c
}

// MaxInFlight counts the requests in flight and refuses those beyond the limits.
type MaxInFlight struct {
	limits Limits

	mu     sync.Mutex
	closed bool
	// By lane.
	reads, writes, watches, connections [lanes]slots
	waiting                             slots
	idle                                chan struct{} // closed when it is closed and empty
}

// slots are the requests of a kind in flight.
type slots struct {
	taken int
	held  map[string]int // by user
}

func (s *slots) take(user string) {
	if s.held == nil {
		s.held = map[string]int{}
	}
	s.taken++
	s.held[user]++
}

func (s *slots) free(user string) {
	s.taken--
	if s.held[user]--; s.held[user] == 0 {
		delete(s.held, user)
	}
}

// NewMaxInFlight returns one that admits requests.
func NewMaxInFlight(l Limits) *MaxInFlight {
	if l.Rule == nil {
		l.Rule = EqualShares
	}
	return &MaxInFlight{limits: l, idle: make(chan struct{})}
}

// Wait admits a request to what comes before its slot, such as waiting for the store,
// and returns the function to call when that is over.
func (g *MaxInFlight) Wait(p RequestDigest) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.Lane != Ordinary {
		return func() {}, nil
	}
	c := p.Connection
	if beyond(g.waiting.held[p.User], g.limits.UserWaiting) || c != nil && beyond(c.waiting, g.limits.ConnectionWaiting) {
		return nil, tooMany()
	}
	g.waiting.take(p.User)
	if c != nil {
		c.waiting++
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waiting.free(p.User)
		if c != nil {
			c.waiting--
		}
	}, nil
}

// beyond reports whether one more is beyond a limit.
func beyond(taken, limit int) bool { return limit > 0 && taken >= limit }

// Enter admits a request and returns the function to call when it ends.
func (g *MaxInFlight) Enter(p RequestDigest) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, apierrors.NewServiceUnavailable("the server is shutting down")
	}
	in, admitted := g.admit(p)
	if !admitted {
		return nil, tooMany()
	}
	in.take(p.User)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		in.free(p.User)
		g.settle()
	}, nil
}

// admit returns the slots for a request, and whether it may have one of them.
func (g *MaxInFlight) admit(p RequestDigest) (in *slots, admitted bool) {
	switch {
	case p.Watch:
		in = &g.watches[p.Lane]
		return in, p.Lane == Reserved || !beyond(in.held[p.User], g.limits.Watches)
	case p.Long:
		in = &g.connections[p.Lane]
		return in, p.Lane != Ordinary || !beyond(in.taken, g.limits.Connections) && !beyond(in.held[p.User], g.limits.UserConnections)
	}
	in, limit := &g.writes[p.Lane], g.limits.Writes
	if p.Read {
		in, limit = &g.reads[p.Lane], g.limits.Reads
	}
	if p.Lane != Ordinary || limit == 0 {
		return in, true
	}
	return in, g.limits.Rule(p, Use{Held: in.held[p.User], Taken: in.taken, Limit: limit})
}

func tooMany() error {
	return apierrors.NewTooManyRequests("too many requests, please try again later", 1)
}

// Drain refuses further requests and waits until no request is in flight.
func (g *MaxInFlight) Drain(ctx context.Context) error {
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

func (g *MaxInFlight) settle() {
	reads, writes, long := g.counts()
	if !g.closed || reads+writes+long > 0 {
		return
	}
	select {
	case <-g.idle:
	default:
		close(g.idle)
	}
}

// Counts returns the numbers of requests in flight, of all lanes.
func (g *MaxInFlight) Counts() (reads, writes, long int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts()
}

// counts is Counts; g.mu is held.
func (g *MaxInFlight) counts() (reads, writes, long int) {
	for lane := range lanes {
		reads += g.reads[lane].taken
		writes += g.writes[lane].taken
		long += g.watches[lane].taken + g.connections[lane].taken
	}
	return reads, writes, long
}

// Waiting returns how many ordinary requests have not come to a slot yet.
func (g *MaxInFlight) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.taken
}
