// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"
	"time"

	"github.com/steer-dev/steer/apiserver/watch"
)

// busy returns traffic of so many events per second, and the time.
func busy(perSecond int) (*watch.Traffic, time.Time) {
	traffic, others := new(watch.Traffic), new(watch.Pace)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 1000 {
		now = now.Add(time.Millisecond)
		others.Sent(traffic, now, max(perSecond/1000, 1))
	}
	return traffic, now
}

// TestPausesFollowWhatIsSent holds that a watch pauses only while much is sent to
// all of them, for longer the more it is, up to a bound, and not for long after.
// One that joins the others in the middle may wait for half as long again.
func TestPausesFollowWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perSecond int
		want      time.Duration
	}{
		{1000, 0}, {2_000, 0}, {6_000, 18 * time.Millisecond}, {20_000, 60 * time.Millisecond}, {1_000_000, 75 * time.Millisecond},
	} {
		traffic, now := busy(c.perSecond)
		longest := time.Duration(0)
		for range 200 {
			now = now.Add(time.Millisecond)
			pause := new(watch.Pace).Sent(traffic, now, max(c.perSecond/1000, 1))
			longest = max(longest, pause)
		}
		if longest < c.want-2*time.Millisecond || longest > c.want {
			t.Errorf("%d events per second: a pause of up to %v, want %v", c.perSecond, longest, c.want)
		}
		if pause := new(watch.Pace).Sent(traffic, now.Add(time.Hour), 1); pause != 0 {
			t.Errorf("after an hour of nothing: %v", pause)
		}
	}
	if pause := new(watch.Pace).Sent(new(watch.Traffic), time.Now(), 1_000_000); pause != 0 {
		t.Errorf("the first events are followed by %v", pause)
	}
}

// TestWatchesPauseUntilTheSameMoment holds that watches that send at different
// times send again together.
func TestWatchesPauseUntilTheSameMoment(t *testing.T) {
	t.Parallel()
	traffic, now := busy(6_000)
	moments := map[time.Time]int{}
	for at := now; at.Sub(now) < 24*time.Millisecond; at = at.Add(100 * time.Microsecond) {
		moments[at.Add(new(watch.Pace).Sent(traffic, at, 1))]++
	}
	if len(moments) > 4 {
		t.Errorf("240 watches that send within 24 ms send again at %d moments", len(moments))
	}
}

// TestAWatchThatWaitsForOneEventWaitsNoMore holds that changes that follow from
// one another are slowed down a few times a second, not each of them; and that a watch
// that gathers several goes on gathering.
func TestAWatchThatWaitsForOneEventWaitsNoMore(t *testing.T) {
	t.Parallel()
	traffic, begin := busy(50_000)
	var others, chain, stream watch.Pace
	waited, gathered := 0, 0
	for now := begin; now.Sub(begin) < 900*time.Millisecond; now = now.Add(5 * time.Millisecond) {
		others.Sent(traffic, now, 250)
		if chain.Sent(traffic, now, 1) > 0 {
			waited++
		}
		if stream.Sent(traffic, now, 2) > 0 {
			gathered++
		}
	}
	if waited != 3 || gathered != 180 {
		t.Errorf("of 180 times each, one event was followed by a pause %d times, want 3; two events %d times, want 180", waited, gathered)
	}
}
