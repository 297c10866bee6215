// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package election_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/steer-dev/steer/manager/election"
)

// contender is a process with a candidate: its clocks, its connection, and its
// term as the manager keeps it.
type contender struct {
	*election.Candidate
	identity string
	// skew of its wall clock; asleep is what its steady clock has missed.
	skew, asleep time.Duration
	next         time.Duration // it does nothing before
	term         election.Term
	faulty       bool // a clock has failed in this term
	// mute and deaf until then: its requests, the answers to it are lost.
	mute, deaf time.Duration
	// known is the lease as its last answer had it.
	known version
	// waits for the answer to its write.
	waits *message
}

func (c *contender) steady(now time.Duration) time.Duration { return now - c.asleep }
func (c *contender) wall(now time.Duration) time.Time       { return epoch.Add(now + c.skew) }

// local is the time by which its candidate counts.
func (c *contender) local(now time.Duration) time.Time { return epoch.Add(c.steady(now)) }

func (c *contender) acts(now time.Duration) bool {
	return c.State() == election.Leading && c.term.Covers(c.steady(now), c.wall(now))
}

// fault marks a failure of a clock, in the term that is and in the one that may
// come of what is under way.
func (c *contender) fault() {
	c.faulty = true
	if c.waits != nil {
		c.waits.faulty = true
	}
}

// version of the lease; the zero number means that there is none yet.
type version struct {
	number int
	record *election.Record
}

// message is a write of the lease on its way.
type message struct {
	from    *contender
	on      version // the precondition
	record  *election.Record
	arrives time.Duration
	// begun is when the attempt began, by the clocks of the sender, which waits for
	// the answer until waitsUntil.
	begun      time.Time
	begunWall  time.Time
	waitsUntil time.Duration
	// answer is what the server made of it; nil before it arrived.
	answer *answer
	// faulty when a clock failed after it was sent.
	faulty bool
}

type answer struct {
	accepted bool
	lease    version
	lost     bool
}

// ballot is the world of the model: a server with one lease, and who fights for it.
type ballot struct {
	*rand.Rand
	rules      election.Timing
	now        time.Duration
	lease      version
	wire       []*message
	contenders []*contender
	// What happened, so that a run that proves nothing is noticed.
	elected, acted, conflicts, partitions int
}

func (b *ballot) fresh(i int) *contender {
	identity := fmt.Sprint(i, "-", b.Uint32())
	return &contender{
		Candidate: election.NewCandidate(identity, b.rules), identity: identity,
		skew: time.Duration(b.Int64N(int64(time.Hour))), next: b.now,
	}
}

func (b *ballot) upTo(limit time.Duration) time.Duration {
	return time.Duration(b.Int64N(int64(limit)))
}

// suffer makes something fail now and then. The clocks: the wall clock is set, or
// the machine sleeps and the steady clock stands still. In one term both together
// can deceive a leader, so that they do not come together. The process: it
// pauses. The network: for a while nothing arrives, or nothing comes back, or
// neither; of one contender, or of all at once.
func (b *ballot) suffer(c *contender) {
	switch b.IntN(40) {
	case 0: // the process pauses, the clocks go on
		c.next = b.now + b.upTo(30*time.Second)
	case 1: // the machine sleeps
		if !c.faulty && (c.waits == nil || !c.waits.faulty) {
			c.fault()
			slept := b.upTo(time.Minute)
			c.asleep += slept
			c.next = b.now + slept
		}
	case 2: // the clock is set
		if !c.faulty && (c.waits == nil || !c.waits.faulty) {
			c.fault()
			c.skew += b.upTo(2*time.Hour) - time.Hour
		}
	case 3:
		b.part(c, b.upTo(time.Minute))
	case 4: // the server is cut off
		if b.IntN(4) == 0 {
			lasts := b.upTo(time.Minute)
			for _, each := range b.contenders {
				b.part(each, lasts)
			}
		}
	}
}

// part cuts one or both directions of a connection.
func (b *ballot) part(c *contender, lasts time.Duration) {
	b.partitions++
	which := b.IntN(3)
	if which != 0 {
		c.mute = max(c.mute, b.now+lasts)
	}
	if which != 1 {
		c.deaf = max(c.deaf, b.now+lasts)
	}
}

// attempt is what the manager does at its turn: read, unless the candidate leads
// and knows the lease, and send what the candidate wants to be written.
func (b *ballot) attempt(c *contender) {
	begun := c.local(b.now)
	limit := max(time.Second, b.rules.Renew/2)
	if c.State() == election.Leading {
		limit = min(limit, c.Deadline().Sub(begun))
	} else {
		if b.now < c.mute || b.now < c.deaf || b.IntN(10) == 0 {
			c.Failed(begun)
			return
		}
		c.known = b.lease
	}
	record := c.Observe(begun, c.known.record)
	if record == nil {
		return
	}
	delay := b.upTo(300 * time.Millisecond)
	if b.IntN(10) == 0 { // a slow way
		delay = b.upTo(20 * time.Second)
	}
	c.waits = &message{
		from: c, on: c.known, record: record, arrives: b.now + delay, begun: begun, waitsUntil: b.now + limit,
		begunWall: c.wall(b.now),
	}
	if b.now >= c.mute && b.IntN(20) != 0 {
		b.wire = append(b.wire, c.waits)
	}
}

// deliver lets a write arrive, however old it is: the precondition decides.
func (b *ballot) deliver(m *message) {
	accepted := m.on.number == b.lease.number
	if accepted {
		b.lease = version{b.lease.number + 1, m.record}
	} else {
		b.conflicts++
	}
	m.answer = &answer{accepted, b.lease, b.now < m.from.deaf || b.IntN(20) == 0}
}

// receive lets a contender read the answer that it waits for, if it still does:
// one that stood still for too long may see either first, the answer or the end of
// its patience.
func (b *ballot) receive(m *message) {
	c := m.from
	if c.waits != m || m.answer.lost || b.now > m.waitsUntil && b.IntN(2) == 0 {
		return
	}
	c.waits = nil
	c.known = m.answer.lease
	if m.answer.accepted {
		c.Wrote(m.begun, *m.record)
		deadline := c.Deadline()
		c.term = election.Term{Steady: deadline.Sub(epoch), Wall: m.begunWall.Add(deadline.Sub(m.begun))}
		c.faulty = m.faulty
		b.elected++
		return
	}
	// The manager reads the lease and lets the candidate judge it.
	c.Failed(c.local(b.now))
	if c.State() == election.Leading {
		c.Observe(c.local(b.now), c.known.record)
	}
}

// step is a tenth of a second.
func (b *ballot) step() {
	b.now += 100 * time.Millisecond
	b.wire = slices.DeleteFunc(b.wire, func(m *message) bool {
		if m.answer == nil && m.arrives <= b.now {
			b.deliver(m)
		}
		if m.answer == nil || b.now < m.from.next {
			return false
		}
		b.receive(m)
		return true
	})
	for i, c := range b.contenders {
		if b.now < c.next {
			continue
		}
		if b.IntN(10) == 0 || c.waits == nil {
			b.suffer(c)
		}
		switch {
		case b.now < c.next, c.waits != nil && b.now < c.waits.waitsUntil:
			continue
		case c.waits != nil:
			c.waits = nil
			c.Failed(c.local(b.now))
		case c.State() != election.Lost:
			b.attempt(c)
		}
		if c.State() == election.Lost {
			b.contenders[i] = b.fresh(i)
			continue
		}
		if c.waits == nil {
			c.next = b.now + c.Pause(b.Float64())
		}
	}
}

// TestAtMostOneLeaderActs lets candidates whose clocks jump and stand still fight
// over a server that cannot always be reached, for a minute or in one direction
// alone, and where writes arrive late. No process may act that does not hold the lease as
// the server has it: a write of theirs would reach it.
func TestAtMostOneLeaderActs(t *testing.T) {
	t.Parallel()
	var total ballot
	const seeds = 150
	for seed := range uint64(seeds) {
		b := &ballot{Rand: rand.New(rand.NewPCG(seed, 7)), rules: timing(t)}
		b.contenders = make([]*contender, 2+seed%4)
		for i := range b.contenders {
			b.contenders[i] = b.fresh(i)
		}
		for b.now < 20*time.Minute {
			b.step()
			for _, c := range b.contenders {
				if !c.acts(b.now) {
					continue
				}
				b.acted++
				if holder := b.lease.record.Holder; holder != c.identity {
					t.Fatalf("seed %d: %s acts at %s, and the lease is held by %q", seed, c.identity, b.now, holder)
				}
			}
		}
		if b.elected == 0 {
			t.Errorf("seed %d: no process was ever elected", seed)
		}
		total.elected += b.elected
		total.acted += b.acted
		total.conflicts += b.conflicts
		total.partitions += b.partitions
	}
	t.Logf("%d terms begun or renewed, %d conflicts, %d partitions, a leader acted %d tenths of a second", total.elected, total.conflicts, total.partitions, total.acted)
	if total.conflicts == 0 || total.partitions == 0 || total.acted < seeds*600 {
		t.Error("the model proves little")
	}
}
