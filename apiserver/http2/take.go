// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2"
)

// take does what a frame says. A [http2.StreamError] ends its stream, any other
// error the connection.
func (c *connection) take(frame http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if _, ok := frame.(*http2.SettingsFrame); !c.settled && !ok {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		return c.takeHeaders(f)
	case *http2.DataFrame:
		return c.takeData(f.StreamID, f.Data(), int(f.Length), f.StreamEnded())
	case *http2.WindowUpdateFrame:
		return c.takeWindow(f)
	case *http2.RSTStreamFrame:
		return c.takeReset(f)
	case *http2.SettingsFrame:
		return c.takeSettings(f)
	case *http2.PingFrame:
		if f.IsAck() {
			return c.nuisance.note()
		}
		c.out.ping(true, f.Data)
		return c.nuisance.note()
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
		return c.nuisance.note()
	case *http2.GoAwayFrame:
		// It sends nothing more; what it has asked for is answered.
		if !c.away {
			c.away = true
			c.out.goAway(c.last, http2.ErrCodeNo)
		}
		return nil
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return c.nuisance.note() // unknown ones are to be ignored
}

// takeSettings takes over what the client wants.
func (c *connection) takeSettings(f *http2.SettingsFrame) error {
	if err := c.nuisance.note(); err != nil {
		return err
	}
	c.settled = true
	if f.IsAck() {
		return nil
	}
	if f.HasDuplicates() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingHeaderTableSize:
			c.out.encoder.SetMaxDynamicTableSize(min(s.Val, c.host.limits.table))
		case http2.SettingInitialWindowSize:
			more := int64(s.Val) - c.streamRoom
			c.streamRoom = int64(s.Val)
			for _, st := range c.streams {
				if st.room += more; st.room > maxWindow {
					return http2.ConnectionError(http2.ErrCodeFlowControl)
				}
				st.changed.Broadcast()
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.out.settingsAck()
	return nil
}

// maxWindow is the largest window there may be.
const maxWindow = 1<<31 - 1

// takeWindow lets answers go on.
func (c *connection) takeWindow(f *http2.WindowUpdateFrame) error {
	if err := c.nuisance.note(); err != nil {
		return err
	}
	if f.StreamID == 0 {
		if c.room += int64(f.Increment); c.room > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		for _, st := range c.streams {
			st.changed.Broadcast()
		}
		return nil
	}
	st := c.streams[f.StreamID]
	if st == nil {
		return c.mayBeLate(f.StreamID)
	}
	if st.room += int64(f.Increment); st.room > maxWindow {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	st.changed.Broadcast()
	return nil
}

// mayBeLate accepts a frame for a stream that has ended, but not for one that has
// never been.
func (c *connection) mayBeLate(id uint32) error {
	if id%2 == 0 || id > c.last && !c.away {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

func (c *connection) takeReset(f *http2.RSTStreamFrame) error {
	if err := c.nuisance.note(); err != nil {
		return err
	}
	st := c.streams[f.StreamID]
	if st == nil {
		return c.mayBeLate(f.StreamID)
	}
	c.drop(st, fmt.Errorf("%w: %v", errReset, f.ErrCode))
	return nil
}

var errReset = errors.New("http2: the client has given up")

// takeData takes a piece of a request's body; size is that of the frame, with its
// padding.
func (c *connection) takeData(id uint32, data []byte, size int, ended bool) error {
	if size > 0 {
		c.nuisance.forget()
	} else if err := c.nuisance.note(); err != nil {
		return err
	}
	if c.allowed -= size; c.allowed < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	st := c.streams[id]
	if st == nil {
		c.giveBack(size)
		if err := c.mayBeLate(id); err != nil || id > c.last {
			return err
		}
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeStreamClosed}
	}
	wrong := http2.ErrCodeNo
	b := &st.body
	b.got += int64(len(data))
	b.allowed -= size
	switch {
	case b.ended:
		wrong = http2.ErrCodeStreamClosed
	case b.allowed < 0:
		wrong = http2.ErrCodeFlowControl
	case b.declared >= 0 && (b.got > b.declared || ended && b.got < b.declared):
		wrong = http2.ErrCodeProtocol
	}
	if wrong != http2.ErrCodeNo {
		c.giveBack(size)
		return http2.StreamError{StreamID: id, Code: wrong}
	}
	if b.closed {
		c.giveBack(size)
	} else {
		b.add(data)
		c.giveBack(size - len(data))
		b.allowed += size - len(data)
	}
	if ended {
		st.endOfBody()
	}
	st.changed.Broadcast()
	return nil
}

// giveBack lets the client send as much again, once it is worth a frame.
func (c *connection) giveBack(n int) {
	if c.owed += n; c.owed >= c.host.limits.connectionWindow/2 {
		c.out.windowUpdate(0, c.owed)
		c.allowed += c.owed
		c.owed = 0
	}
}
