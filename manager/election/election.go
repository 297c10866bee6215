// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package election decides who leads: the rules of a lease, without a clock or
// a connection of its own.
//
// A [Candidate] is told what the lease looks like and what came of its writes;
// it answers what to do next. The rules are those of Kubernetes' leader
// election on coordination.k8s.io Leases: a lease is free when no process holds it
// or when it has not changed for its duration *as observed by this candidate's
// clock*, so clocks are never compared; a leader that could not renew within
// the renew deadline stops before others may take over.
package election

import (
	"errors"
	"time"
)

// Timing of an election. The zero value takes the defaults, which are those of
// every Kubernetes component.
type Timing struct {
	// Lease is how long others wait after the last renewal they saw. Default 15 s.
	Lease time.Duration
	// Renew is how long a leader keeps trying to renew before it gives up.
	// Default 10 s; must be below Lease.
	Renew time.Duration
	// Retry is the pause between attempts. Default 2 s; must be below Renew.
	Retry time.Duration
}

// ErrTiming reports that the durations of an election contradict each other.
var ErrTiming = errors.New("election: want 0 < Retry < Renew < Lease, and a Lease of whole seconds")

// WithDefaults fills in what is zero and checks the rest.
func (t Timing) WithDefaults() (Timing, error) {
	if t.Lease == 0 {
		t.Lease = 15 * time.Second
	}
	if t.Renew == 0 {
		t.Renew = t.Lease * 2 / 3
	}
	if t.Retry == 0 {
		t.Retry = t.Renew / 5
	}
	if t.Retry <= 0 || t.Retry >= t.Renew || t.Renew >= t.Lease || t.Lease%time.Second != 0 {
		return t, ErrTiming
	}
	return t, nil
}

// Record is what a lease says.
type Record struct {
	// Holder is the identity of the leader; empty when the lease was released.
	Holder string
	// Duration for which the holder asked.
	Duration time.Duration
	// Acquired and Renewed are the holder's times; informative only.
	Acquired, Renewed time.Time
	// Transitions counts the changes of the holder.
	Transitions int32
}

// State of a candidate.
type State int

const (
	// Following: another process leads, or none.
	Following State = iota
	// Leading: this candidate holds the lease and may act until its deadline.
	Leading
	// Lost: it led and does no more. Final: a new candidate must start over.
	Lost
)

func (s State) String() string { return [...]string{"following", "leading", "lost"}[s] }

// Term is how long a leader may act without another renewal. Two clocks measure
// it, and both must say that it goes on: the steady clock of the process never
// jumps but stands still while the machine sleeps, the wall clock goes on but
// may be set. The zero Term is over.
type Term struct {
	Steady time.Duration
	Wall   time.Time
}

// Covers reports whether the term goes on at the given readings of the clocks.
func (t Term) Covers(steady time.Duration, wall time.Time) bool {
	return steady < t.Steady && wall.Before(t.Wall)
}

// Candidate is one contender for one lease. It is not safe for concurrent use.
type Candidate struct {
	identity string
	timing   Timing
	state    State
	// seen is the lease as last observed, and when it was seen to change.
	seen     Record
	seenAt   time.Time
	deadline time.Time
}

// NewCandidate returns a follower. timing must have passed WithDefaults.
func NewCandidate(identity string, timing Timing) *Candidate {
	return &Candidate{identity: identity, timing: timing}
}

// State returns the state as of the last call.
func (c *Candidate) State() State { return c.state }

// Deadline is the time up to which a leader may act without another renewal.
func (c *Candidate) Deadline() time.Time { return c.deadline }

// Holder returns who holds the lease as last observed.
func (c *Candidate) Holder() string { return c.seen.Holder }

// Observe tells what the lease looks like at now; nil means that it does not
// exist. It returns the record to write with the observed revision as a
// precondition, or nil when there is nothing to do before the next attempt.
func (c *Candidate) Observe(now time.Time, found *Record) *Record {
	if c.expire(now) == Lost {
		return nil
	}
	if found == nil {
		if c.state == Leading {
			// Deleted under the leader: it claims the lease anew, as long as it is in time.
			next := c.seen
			next.Renewed = now
			return &next
		}
		c.seen, c.seenAt = Record{}, now
		return &Record{Holder: c.identity, Duration: c.timing.Lease, Acquired: now, Renewed: now}
	}
	if *found != c.seen || c.seenAt.IsZero() {
		c.seen, c.seenAt = *found, now
	}
	mine := c.seen.Holder == c.identity
	switch {
	case c.state == Leading && !mine:
		c.state = Lost
		return nil
	case mine:
		next := c.seen
		next.Duration, next.Renewed = c.timing.Lease, now
		return &next
	case c.seen.Holder != "" && now.Before(c.seenAt.Add(c.seen.Duration)):
		return nil
	default:
		return &Record{
			Holder: c.identity, Duration: c.timing.Lease,
			Acquired: now, Renewed: now, Transitions: c.seen.Transitions + 1,
		}
	}
}

// Wrote reports that the record from Observe was accepted. attempted is the time
// given to that Observe: the deadline counts from before the write was sent,
// because others may count from the moment it arrived.
func (c *Candidate) Wrote(attempted time.Time, record Record) {
	if c.state == Lost {
		return
	}
	c.state = Leading
	c.seen, c.seenAt = record, attempted
	c.deadline = attempted.Add(c.timing.Renew)
}

// Failed tells at now that reading or writing the lease failed, for whatever
// reason; a conflict is a failure like any other.
func (c *Candidate) Failed(now time.Time) State { return c.expire(now) }

// expire turns a leader whose deadline has passed into a loser.
func (c *Candidate) expire(now time.Time) State {
	if c.state == Leading && !now.Before(c.deadline) {
		c.state = Lost
	}
	return c.state
}

// Pause returns how long to wait before the next attempt. jitter is in [0, 1):
// followers spread out over 1 to 2.2 retry periods, leaders keep the period.
func (c *Candidate) Pause(jitter float64) time.Duration {
	if c.state == Leading {
		return c.timing.Retry
	}
	return c.timing.Retry + time.Duration(jitter*1.2*float64(c.timing.Retry))
}

// Release gives the lease up. It returns the record to write, or nil when this
// candidate does not lead. Call it only after the last write that
// leadership entitles to has returned.
func (c *Candidate) Release(now time.Time) *Record {
	if c.expire(now) != Leading {
		return nil
	}
	c.state = Lost
	return &Record{Duration: time.Second, Acquired: now, Renewed: now, Transitions: c.seen.Transitions}
}
