// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"
	"time"
)

// Waking a watch and writing to its connection costs about as much for one event
// as for five, and an encrypted record with five not much more than one with one.
// While little is sent, every event goes out at once. The more events all watches
// together are sent, the longer each of them gathers before it sends again.
const (
	// calm is how many events per second are sent one by one.
	calm = 2500
	// eventsPerPause is how many events per second are worth a millisecond.
	eventsPerPause = 500
	maxPause       = 40 * time.Millisecond
	// span is how long events are counted before the count is believed.
	span = 100 * time.Millisecond
)

// Traffic measures what all watches of a server are sent, and says how long one
// of them gathers. Its zero value is ready; it is safe for concurrent use.
type Traffic struct {
	mu    sync.Mutex
	since time.Time
	count int
	// rate is that of the last span that has passed, in events per second.
	rate int
}

// Sent counts events that one watch has just sent, and returns for how long it
// waits before it looks for more: 0, unless there is much to do.
func (t *Traffic) Sent(now time.Time, events int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if passed := now.Sub(t.since); passed >= span {
		t.rate = int(int64(t.count) * int64(time.Second) / int64(passed))
		t.since, t.count = now, 0
	}
	t.count += events
	if t.rate < calm {
		return 0
	}
	return min(time.Duration(t.rate/eventsPerPause)*time.Millisecond, maxPause)
}
