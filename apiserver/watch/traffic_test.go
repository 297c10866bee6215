// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"
	"time"

	"github.com/steer-dev/steer/apiserver/watch"
)

// TestPausesFollowWhatIsSent holds that a watch pauses only while much is sent to
// all of them, for longer the more it is, up to a bound, and not for long after.
func TestPausesFollowWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perSecond int
		want      time.Duration
	}{
		{10, 0}, {2_000, 0}, {6_000, 12 * time.Millisecond}, {20_000, 40 * time.Millisecond}, {1_000_000, 40 * time.Millisecond},
	} {
		var traffic watch.Traffic
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if pause := traffic.Sent(now, 1_000_000); pause != 0 {
			t.Errorf("the first event is followed by %v", pause)
		}
		now = now.Add(time.Hour)
		var last time.Duration
		for range 1000 {
			now = now.Add(time.Millisecond)
			if c.perSecond >= 1000 || now.UnixMilli()%100 == 0 {
				last = traffic.Sent(now, max(c.perSecond/1000, 1))
			}
		}
		if last < c.want-time.Millisecond || last > c.want {
			t.Errorf("%d events per second: a pause of %v, want %v", c.perSecond, last, c.want)
		}
		if pause := traffic.Sent(now.Add(time.Hour), 1); pause != 0 {
			t.Errorf("after an hour of nothing: %v", pause)
		}
	}
}
