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
	maxPause       = 50 * time.Millisecond
	// span is how long events are counted before the count is believed.
	span = 100 * time.Millisecond
	// A watch that has waited for a single event so often in a row does not gather
	// for a while. Where two or three come in a pause, every fourth brings just one.
	mostVain = 8
	haste    = time.Second
)

// Traffic measures what all watches of a server are sent, and says until when one
// of them gathers: all of them until the same moments, so that the server wakes
// once for many. Its zero value is ready; it is safe for concurrent use.
type Traffic struct {
	mu    sync.Mutex
	since time.Time
	count int
	// rate is that of the last span that has passed, in events per second.
	rate int
	// moment is when watches that gather send again; it may have passed.
	moment time.Time
}

// sent counts events and returns when watches send again: zero for at once, which
// it is unless there is much to do.
func (t *Traffic) sent(now time.Time, events int) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if passed := now.Sub(t.since); passed >= span {
		t.rate = int(int64(t.count) * int64(time.Second) / int64(passed))
		t.since, t.count = now, 0
	}
	t.count += events
	if t.rate < calm {
		return time.Time{}
	}
	if !t.moment.After(now) {
		pause := min(time.Duration(t.rate/eventsPerPause)*time.Millisecond, maxPause)
		// What sending to all takes is part of the pause, unless it takes most of it.
		if t.moment = t.moment.Add(pause); t.moment.Sub(now) < pause/2 {
			t.moment = now.Add(pause)
		}
	}
	return t.moment
}

// Pace is how one watch takes part in the traffic. Its zero value is ready; it is
// for one goroutine at a time.
type Pace struct {
	// paused tells that the watch has waited before what it sends next; vain, how
	// often in a row it did so for a single event.
	paused bool
	vain   int
	// hasty is until when it does not wait.
	hasty time.Time
}

// Sent counts events that the watch has just sent, and returns when it looks for
// more, zero for at once. A watch whose waits bring single events waits no more for
// a while: somebody may make the next change when they see this one, and would be
// slowed down for nothing.
func (p *Pace) Sent(t *Traffic, now time.Time, events int) time.Time {
	moment := t.sent(now, events)
	switch {
	case events > 1:
		p.vain = 0
	case p.paused && events == 1:
		if p.vain++; p.vain == mostVain {
			p.vain, p.hasty = 0, now.Add(haste)
		}
	}
	if now.Before(p.hasty) {
		moment = time.Time{}
	}
	p.paused = !moment.IsZero()
	return moment
}
