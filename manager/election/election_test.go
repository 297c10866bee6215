// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package election_test

import (
	"errors"
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
