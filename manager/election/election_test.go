// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package election_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/steer-dev/steer/manager/election"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func timing(t *testing.T) election.Timing {
	t.Helper()
	got, err := election.Timing{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTimingDefaultsAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	want := election.Timing{Lease: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}
	if got := timing(t); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []election.Timing{
		{Lease: time.Second, Renew: 2 * time.Second},
		{Lease: 15 * time.Second, Renew: time.Second, Retry: time.Second},
		{Lease: 1500 * time.Millisecond},
		{Retry: -1},
	} {
		if _, err := bad.WithDefaults(); !errors.Is(err, election.ErrTiming) {
			t.Errorf("%+v: got %v, want ErrTiming", bad, err)
		}
	}
}

func TestAFreeLeaseIsTaken(t *testing.T) {
	t.Parallel()
	for name, found := range map[string]*election.Record{
		"absent":   nil,
		"released": {Holder: "", Duration: time.Second, Transitions: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := election.NewCandidate("a", timing(t))
			next := c.Observe(epoch, found)
			if next == nil || next.Holder != "a" {
				t.Fatalf("got %+v, want a claim by a", next)
			}
			if found != nil && next.Transitions != 4 {
				t.Errorf("transitions = %d, want 4", next.Transitions)
			}
			if c.State() != election.Following {
				t.Error("a candidate leads before its claim was accepted")
			}
			c.Wrote(epoch, *next)
			if c.State() != election.Leading || !c.Deadline().Equal(epoch.Add(10*time.Second)) {
				t.Errorf("state %s, deadline %s", c.State(), c.Deadline())
			}
		})
	}
}

func TestAHeldLeaseIsTakenOnlyAfterItStoodStillForItsDuration(t *testing.T) {
	t.Parallel()
	c := election.NewCandidate("b", timing(t))
	// The holder's clock is hours ahead: only what b saw counts.
	held := election.Record{Holder: "a", Duration: 15 * time.Second, Renewed: epoch.Add(5 * time.Hour)}
	if got := c.Observe(epoch, &held); got != nil {
		t.Fatalf("took a lease just seen: %+v", got)
	}
	renewed := held
	renewed.Renewed = renewed.Renewed.Add(time.Second)
	if got := c.Observe(epoch.Add(14*time.Second), &renewed); got != nil {
		t.Fatalf("took a renewed lease: %+v", got)
	}
	if got := c.Observe(epoch.Add(28*time.Second), &renewed); got != nil {
		t.Fatalf("took a lease 14 s after its renewal was seen: %+v", got)
	}
	if got := c.Observe(epoch.Add(29*time.Second), &renewed); got == nil || got.Holder != "b" || got.Transitions != 1 {
		t.Fatalf("got %+v, want a claim with one transition", got)
	}
}

func TestALeaderThatCannotRenewStopsAtItsDeadline(t *testing.T) {
	t.Parallel()
	c := election.NewCandidate("a", timing(t))
	c.Wrote(epoch, *c.Observe(epoch, nil))
	if got := c.Failed(epoch.Add(10*time.Second - 1)); got != election.Leading {
		t.Fatalf("%s before the deadline", got)
	}
	if got := c.Failed(epoch.Add(10 * time.Second)); got != election.Lost {
		t.Fatalf("%s at the deadline", got)
	}
	if c.Observe(epoch.Add(11*time.Second), nil) != nil {
		t.Error("a loser writes the lease")
	}
	if c.Release(epoch.Add(11*time.Second)) != nil {
		t.Error("a loser releases the lease")
	}
}

func TestALeaderThatSeesAnotherHolderStops(t *testing.T) {
	t.Parallel()
	c := election.NewCandidate("a", timing(t))
	c.Wrote(epoch, *c.Observe(epoch, nil))
	if c.Observe(epoch.Add(time.Second), &election.Record{Holder: "b", Duration: time.Second}) != nil || c.State() != election.Lost {
		t.Errorf("state %s, want lost", c.State())
	}
}

func TestAReleasedLeaseIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	a, b := election.NewCandidate("a", timing(t)), election.NewCandidate("b", timing(t))
	a.Wrote(epoch, *a.Observe(epoch, nil))
	released := a.Release(epoch.Add(time.Second))
	if released == nil || released.Holder != "" {
		t.Fatalf("got %+v", released)
	}
	if got := b.Observe(epoch.Add(time.Second), released); got == nil || got.Holder != "b" {
		t.Errorf("got %+v, want a claim by b", got)
	}
}

// contender is a process with a candidate: its clocks, and its term as the
// manager keeps it.
type contender struct {
	*election.Candidate
	// skew of its wall clock; asleep is what its steady clock has missed.
	skew, asleep time.Duration
	next         time.Duration // it does nothing before
	term         election.Term
	faulty       bool // a clock has failed in this term
}

func (c *contender) steady(now time.Duration) time.Duration { return now - c.asleep }
func (c *contender) wall(now time.Duration) time.Time       { return epoch.Add(now + c.skew) }

// local is the time by which its candidate counts.
func (c *contender) local(now time.Duration) time.Time { return epoch.Add(c.steady(now)) }

func (c *contender) acts(now time.Duration) bool {
	return c.State() == election.Leading && c.term.Covers(c.steady(now), c.wall(now))
}

// won begins a term, as the write of the lease was attempted at now.
func (c *contender) won(now time.Duration, timing election.Timing) {
	c.term = election.Term{Steady: c.steady(now) + timing.Renew, Wall: c.wall(now).Add(timing.Renew)}
	c.faulty = false
}

// suffer gives a clock a fault now and then: the wall clock is set, or the
// machine sleeps and the steady clock stands still. In one term both together
// can deceive a leader, so that they do not come together.
func (c *contender) suffer(r *rand.Rand, now time.Duration) {
	switch r.IntN(30) {
	case 0: // the process pauses, the clocks go on
		c.next = now + time.Duration(r.Int64N(int64(30*time.Second)))
	case 1: // the machine sleeps
		if !c.faulty {
			c.faulty = true
			slept := time.Duration(r.Int64N(int64(time.Minute)))
			c.asleep += slept
			c.next = now + slept
		}
	case 2: // somebody sets the clock
		if !c.faulty {
			c.faulty = true
			c.skew += time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour
		}
	}
}

// TestAtMostOneLeaderActs lets candidates whose clocks jump and stand still fight
// over a server that loses requests and answers, and checks that no two of them
// act at the same real time.
func TestAtMostOneLeaderActs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			var (
				lease   *election.Record
				version int
				elected int
				rules   = timing(t)
			)
			contenders := make([]*contender, 3)
			fresh := func(i int) *contender {
				return &contender{
					Candidate: election.NewCandidate(fmt.Sprint(i, "-", r.Uint32()), rules),
					skew:      time.Duration(r.Int64N(int64(time.Hour))),
				}
			}
			for i := range contenders {
				contenders[i] = fresh(i)
			}
			for now := time.Duration(0); now < 10*time.Minute; now += 100 * time.Millisecond {
				for i, c := range contenders {
					if now < c.next {
						continue
					}
					if c.suffer(r, now); now < c.next {
						continue
					}
					local := c.local(now)
					switch r.IntN(5) {
					case 0: // the read fails
						c.Failed(local)
					case 1: // the write is lost, or its answer is
						if next := c.Observe(local, lease); next != nil && r.IntN(2) == 0 {
							lease, version = next, version+1
						}
						c.Failed(local)
					default:
						read := version
						if next := c.Observe(local, lease); next != nil && read == version {
							lease, version = next, version+1
							c.Wrote(local, *next)
							c.won(now, rules)
							elected++
						}
					}
					if c.State() == election.Lost {
						contenders[i] = fresh(i)
						contenders[i].next = now
						continue
					}
					c.next = now + c.Pause(r.Float64())
				}
				acting := 0
				for _, c := range contenders {
					if c.acts(now) {
						acting++
					}
				}
				if acting > 1 {
					t.Fatalf("%d leaders act at %s", acting, now)
				}
			}
			if elected == 0 {
				t.Fatal("nobody was ever elected: the test proves nothing")
			}
		})
	}
}
