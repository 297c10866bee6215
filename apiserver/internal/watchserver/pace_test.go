// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"testing"
	"testing/synctest"
	"time"
)

// busy returns traffic of a number of events per second, and the time.
func busy(perSecond int) (*traffic, time.Time) {
	traffic, others := new(traffic), new(pace)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 1000 {
		now = now.Add(time.Millisecond)
		others.sent(traffic, now, max(perSecond/1000, 1))
	}
	return traffic, now
}

// TestPauseGrowsWithTheTraffic: a watch pauses only while many events are sent, longer
// the more there are, up to a bound, and not for long after.
func TestPauseGrowsWithTheTraffic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perSecond int
		want      time.Duration
	}{
		{1000, 0}, {2_000, 0}, {6_000, 12 * time.Millisecond}, {21_000, 42 * time.Millisecond}, {1_000_000, 50 * time.Millisecond},
	} {
		traffic, now := busy(c.perSecond)
		longest := time.Duration(0)
		for range 200 {
			now = now.Add(time.Millisecond)
			if moment := new(pace).sent(traffic, now, max(c.perSecond/1000, 1)); !moment.IsZero() {
				longest = max(longest, moment.Sub(now))
			}
		}
		if longest < c.want-2*time.Millisecond || longest > c.want {
			t.Errorf("%d events per second: a pause of up to %v, want %v", c.perSecond, longest, c.want)
		}
		if moment := new(pace).sent(traffic, now.Add(time.Hour), 1); !moment.IsZero() {
			t.Errorf("after an hour of nothing a watch waits until %v", moment)
		}
	}
	if moment := new(pace).sent(new(traffic), time.Now(), 1_000_000); !moment.IsZero() {
		t.Errorf("after the first events a watch waits until %v", moment)
	}
}

// TestWatchesPauseUntilTheSameTime: watches that send at different times send again
// together, at times that sending does not delay.
func TestWatchesPauseUntilTheSameTime(t *testing.T) {
	t.Parallel()
	traffic, now := busy(6_000)
	var moments []time.Time
	for at := now; at.Sub(now) < 96*time.Millisecond; at = at.Add(100 * time.Microsecond) {
		moment := new(pace).sent(traffic, at, 1)
		if n := len(moments); n == 0 || !moments[n-1].Equal(moment) {
			moments = append(moments, moment)
		}
	}
	if n := len(moments); n < 8 || n > 9 {
		t.Errorf("watches that send within 96 ms send again at %d moments, want 8 or 9", n)
	}
	for i, moment := range moments[1:] {
		if gap := moment.Sub(moments[i]); gap != 12*time.Millisecond {
			t.Errorf("there are %v between two moments, want 12 ms", gap)
		}
	}
}

// TestPauseExcludesSlowSending: a server that sends for most of a pause
// still waits for one.
func TestPauseExcludesSlowSending(t *testing.T) {
	t.Parallel()
	traffic, now := busy(6_000)
	first := new(pace).sent(traffic, now, 1)
	now = first.Add(8 * time.Millisecond)
	if pause := new(pace).sent(traffic, now, 1).Sub(now); pause < 11*time.Millisecond {
		t.Errorf("a watch that sends 8 ms late gathers for %v, want 11 or 12 ms", pause)
	}
}

// TestPaceStopsWaitingForSingleEvents: changes that follow from one another are
// delayed a few times a second, not each of them; and a watch that gathers several
// events goes on gathering.
func TestPaceStopsWaitingForSingleEvents(t *testing.T) {
	t.Parallel()
	traffic, begin := busy(50_000)
	var others, chain, stream pace
	waited, gathered := 0, 0
	for now := begin; now.Sub(begin) < 900*time.Millisecond; now = now.Add(5 * time.Millisecond) {
		others.sent(traffic, now, 250)
		if !chain.sent(traffic, now, 1).IsZero() {
			waited++
		}
		if !stream.sent(traffic, now, 2).IsZero() {
			gathered++
		}
	}
	if waited != 8 || gathered != 180 {
		t.Errorf("of 180 times each, one event was followed by a pause %d times, want 8; two events %d times, want 180", waited, gathered)
	}
}

func TestSharedTimerFiresAtItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		at := time.Now().Add(time.Second)
		fired := timer.C(at)
		time.Sleep(time.Second - time.Nanosecond)
		select {
		case <-fired:
			t.Error("fired early")
		default:
		}
		if <-fired; !time.Now().Equal(at) {
			t.Errorf("fired at %v, want %v", time.Now(), at)
		}
	})
}

func TestSharedTimerIsSharedByWatchesOfTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		at := time.Now().Add(time.Second)
		first := timer.C(at)
		if second := timer.C(at.UTC()); first != second {
			t.Error("the same time in another zone has a channel of its own")
		}
		<-first
		if late := timer.C(at); late != first {
			t.Error("a call after the time has a channel of its own")
		}
	})
}

func TestSharedTimerKeepsEarlierTimesWhenAnotherIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		begin := time.Now()
		late, soon := timer.C(begin.Add(2*time.Second)), timer.C(begin.Add(time.Second))
		if <-soon; time.Since(begin) != time.Second {
			t.Errorf("the second time fired after %v", time.Since(begin))
		}
		select {
		case <-late:
			t.Error("the first time fired with the second")
		default:
		}
		if <-late; time.Since(begin) != 2*time.Second {
			t.Errorf("the first time fired after %v", time.Since(begin))
		}
	})
}

func TestSharedTimerFiresAtOnceForATimeThatHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		begin := time.Now()
		if <-timer.C(begin.Add(-time.Hour)); !time.Now().Equal(begin) {
			t.Errorf("fired after %v", time.Since(begin))
		}
	})
}
