// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"sync"
	"time"
)

// Waking a watch and writing to its connection costs about as much for one event as for
// five, and an encrypted record with five not much more than one with one. While few
// events are sent, each goes out at once. The more events all watches together are
// sent, the longer each of them waits before it sends again.
const (
	// calm is the number of events per second up to which each is sent at once.
	calm = 2500
	// eventsPerPause is the number of events per second for each millisecond of pause.
	eventsPerPause = 500
	maxPause       = 50 * time.Millisecond
	// span is how long events are counted for one measurement of the rate.
	span = 100 * time.Millisecond
	// mostSingle is how often in a row a watch may wait for a single event; then it stops
	// waiting for a while. Where two or three events come in a pause, every fourth
	// brings only one.
	mostSingle = 8
	noPauseFor = time.Second
)

// traffic measures how many events all watches of a server are sent, and returns until
// when a watch waits: all of them until the same times, so that the server wakes once
// for many. Its zero value is ready; it is safe for concurrent use.
type traffic struct {
	mu    sync.Mutex
	since time.Time
	count int
	// rate is that of the last complete span, in events per second.
	rate int
	// moment is when waiting watches send again; it may be in the past.
	moment time.Time
}

// sent counts events and returns when watches send again: zero for at once, unless many
// events are sent.
func (t *traffic) sent(now time.Time, events int) time.Time {
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
		// The time that sending to all watches takes is part of the pause, unless it
		// takes most of it.
		if t.moment = t.moment.Add(pause); t.moment.Sub(now) < pause/2 {
			t.moment = now.Add(pause)
		}
	}
	return t.moment
}

// pace is the state of one watch in the traffic. Its zero value is ready; it is for one
// goroutine at a time.
type pace struct {
	// paused is set if the watch waited before it sends next; single counts how often in
	// a row it did so for a single event.
	paused bool
	single int
	// atOnceUntil is the end of the time in which it does not wait.
	atOnceUntil time.Time
}

// sent counts events that the watch has just sent, and returns when it looks for more,
// zero for at once. A watch that repeatedly waits for a single event stops waiting for
// a while: its client may make the next change when it sees this one, and waiting would
// only slow it down.
func (p *pace) sent(t *traffic, now time.Time, events int) time.Time {
	moment := t.sent(now, events)
	switch {
	case events > 1:
		p.single = 0
	case p.paused && events == 1:
		if p.single++; p.single == mostSingle {
			p.single, p.atOnceUntil = 0, now.Add(noPauseFor)
		}
	}
	if now.Before(p.atOnceUntil) {
		moment = time.Time{}
	}
	p.paused = !moment.IsZero()
	return moment
}

// sharedTimer wakes many watches with one timer. Its zero value is ready; it is safe
// for concurrent use.
type sharedTimer struct {
	mu    sync.Mutex
	time  time.Time
	fired chan struct{}
}

// C returns a channel that is closed at a time. All calls with the same time share it
// until a call names another time.
func (m *sharedTimer) C(at time.Time) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fired == nil || !m.time.Equal(at) {
		fired := make(chan struct{})
		time.AfterFunc(time.Until(at), func() { close(fired) })
		m.time, m.fired = at, fired
	}
	return m.fired
}
