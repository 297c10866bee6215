// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"errors"
	"net"
	"time"

	"golang.org/x/net/http2"
)

// source reads from the client and knows how long it has been silent. It is the
// reader's alone.
type source struct {
	c *connection
	// heard is when something came last; asked, when the client was asked whether
	// it lives, zero once it has said something.
	heard, asked time.Time
}

// Read implements io.Reader. It returns when there is something to read, or when
// there is nothing more to wait for.
func (s *source) Read(p []byte) (int, error) {
	for {
		n, err := s.c.conn.Read(p)
		if n > 0 {
			s.heard, s.asked = time.Now(), time.Time{}
			return n, nil
		}
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() {
			return n, err
		}
		if err := s.silence(time.Now()); err != nil {
			return 0, err
		}
	}
}

// silence decides what it means that nothing came.
func (s *source) silence(now time.Time) error {
	c, l := s.c, &s.c.host.limits
	c.mu.Lock()
	idle, settled, ending := c.idle(), c.settled, c.ending
	c.mu.Unlock()
	switch {
	case ending:
		return errFinished
	case !settled && l.preface > 0 && now.Sub(s.heard) >= l.preface:
		return errSilent
	case !s.asked.IsZero() && now.Sub(s.asked) >= l.answer:
		return errSilent
	case !idle.IsZero() && l.idle > 0 && now.Sub(idle) >= l.idle:
		c.goAway()
		return nil // the deadline is that of the farewell
	case s.asked.IsZero() && l.quiet > 0 && now.Sub(s.heard) >= l.quiet:
		s.asked = now
		c.mu.Lock()
		c.out.ping(false, [8]byte{'s', 't', 'e', 'e', 'r'})
		err := c.flush(nil)
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return s.arm(now)
}

// arm sets when silence has to be looked at next. Requests do not move it, so that
// they need not touch a timer: it may find that nothing is due yet.
func (s *source) arm(now time.Time) error {
	c, l := s.c, &s.c.host.limits
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return nil
	}
	var next time.Time
	sooner := func(from time.Time, after time.Duration) {
		if after > 0 && (next.IsZero() || from.Add(after).Before(next)) {
			next = from.Add(after)
		}
	}
	if !c.settled {
		sooner(s.heard, l.preface)
	}
	if idle := c.idle(); !idle.IsZero() {
		sooner(idle, l.idle)
	} else {
		sooner(now, l.idle)
	}
	if s.asked.IsZero() {
		sooner(s.heard, l.quiet)
	} else {
		sooner(s.asked, l.answer)
	}
	return c.conn.SetReadDeadline(next)
}

// idle returns since when there are no streams, zero if there are; c.mu is held.
func (c *connection) idle() time.Time {
	if len(c.streams) > 0 {
		return time.Time{}
	}
	return c.idleSince
}

// nuisance counts frames that bring nobody further.
type nuisance struct {
	count int
	since time.Time
}

// Bounds of nuisance: more frames than most in period, with no request and no data
// in between, end the connection.
const (
	most   = 10_000
	period = 10 * time.Second
)

// note counts one more.
func (n *nuisance) note() error {
	if n.count++; n.count == 1 {
		n.since = time.Now()
	}
	if n.count <= most {
		return nil
	}
	if time.Since(n.since) < period {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	n.count = 0
	return nil
}

// forget is called when something useful came.
func (n *nuisance) forget() { n.count = 0 }
