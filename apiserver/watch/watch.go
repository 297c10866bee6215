// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch is the watch protocol as a state machine without I/O.
//
// The caller feeds it the store's events and the time, and sends the frames that it
// returns. A stream goes through these states:
//
//	Starting ──Start, Forward──> Live ──Fail, Finish──> Ended
//
// Start emits synthetic ADDED events for the existing objects if the request asks for
// them, and then, if asked, the bookmark that marks their end. Batch turns changes into
// ADDED, MODIFIED and DELETED as objects enter, stay in and leave the selection, which
// may differ from what happened to the object. Forward takes the place of both for a source
// that makes its events itself. Tick emits bookmarks when they are due.
// Fail and Finish emit the last frame: an error of Start or Batch, or of sending their
// frames, is passed to Fail, and nothing is sent after it.
package watch

import (
	"iter"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Type of a frame, as it goes over the wire.
type Type string

// The types.
const (
	Added    Type = "ADDED"
	Modified Type = "MODIFIED"
	Deleted  Type = "DELETED"
	Bookmark Type = "BOOKMARK"
	Error    Type = "ERROR"
)

// Frame is one event to send.
type Frame struct {
	Type Type
	// Record to send; nil for bookmarks and errors.
	Record *storage.Record
	// Revision of a bookmark; otherwise, if not 0, the resourceVersion to send in place
	// of the record's own.
	Revision storage.Revision
	// InitialEnd marks the bookmark that ends the initial events.
	InitialEnd bool
	// Err is the error of an Error frame.
	Err error
}

// State of a stream.
type State int

// The states.
const (
	Starting State = iota
	Live
	Ended
)

// Options of a stream.
type Options struct {
	// Matches reports whether a record is selected; an error ends the watch. nil: all
	// are.
	Matches func(*storage.Record) (bool, error)
	// After is the revision that the client has seen; changes up to it are not
	// sent. Unused with Initial.
	After storage.Revision
	// Initial asks for synthetic events for the existing objects first.
	Initial bool
	// InitialEnd asks for a bookmark after them.
	InitialEnd bool
	// Bookmarks is the time between bookmarks; 0 sends none, and forwards none.
	Bookmarks time.Duration
}

// Stream is one watch. It is for one goroutine at a time.
type Stream struct {
	options Options
	state   State
	// sent is the revision that the client knows.
	sent storage.Revision
	// reached is the revision up to which everything has been sent.
	reached storage.Revision
	due     time.Time
	frames  []Frame
}

// New returns a stream in the state Starting.
func New(options Options) *Stream {
	return &Stream{options: options, reached: options.After, sent: options.After}
}

// State returns the state.
func (s *Stream) State() State { return s.state }

// Reached returns the revision from which a cursor has to continue.
func (s *Stream) Reached() storage.Revision { return s.reached }

// Due returns when to call Tick next; zero for never.
func (s *Stream) Due() time.Time { return s.due }

// Start begins the stream and yields its first frames. present are the records at a
// revision, in the order in which they are sent; it is read with Initial only. The
// sequence ends with the first error, of present or of the selection. The stream is Live
// when it ends, or when the caller leaves it.
func (s *Stream) Start(now time.Time, at storage.Revision, present iter.Seq2[*storage.Record, error]) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		if s.state != Starting {
			return
		}
		s.state = Live
		if s.options.Bookmarks > 0 {
			s.due = now.Add(s.options.Bookmarks)
		}
		if !s.options.Initial {
			return
		}
		for rec, err := range present {
			selected := false
			if err == nil {
				selected, err = s.matches(rec)
			}
			if err != nil {
				yield(Frame{}, err)
				return
			}
			if selected && !yield(Frame{Type: Added, Record: rec}, nil) {
				return
			}
		}
		s.reached = at
		if s.options.InitialEnd {
			s.sent = at
			yield(Frame{Type: Bookmark, Revision: at, InitialEnd: true}, nil)
		}
	}
}

// Batch returns the frames of a batch of changes. They are valid until the next call. With
// an error they are those of the changes before the one that failed.
func (s *Stream) Batch(b storage.Batch) ([]Frame, error) {
	s.frames = s.frames[:0]
	if s.state != Live {
		return nil, nil
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Record.Modified <= s.reached {
			continue
		}
		frame, ok, err := s.frame(e)
		if err != nil {
			return s.frames, err
		}
		if ok {
			s.frames = append(s.frames, frame)
			s.sent = e.Record.Modified
		}
	}
	s.reached = max(s.reached, b.Revision)
	return s.frames, nil
}

// frame returns the event of a change for the selection; ok is false if there is none.
func (s *Stream) frame(e *storage.Event) (f Frame, ok bool, err error) {
	var is, was bool
	if !e.Deleted {
		if is, err = s.matches(e.Record); err != nil {
			return Frame{}, false, err
		}
	}
	if e.Previous != nil {
		if was, err = s.matches(e.Previous); err != nil {
			return Frame{}, false, err
		}
	}
	switch {
	case is && was:
		return Frame{Type: Modified, Record: e.Record}, true, nil
	case is:
		return Frame{Type: Added, Record: e.Record}, true, nil
	case was && e.Deleted:
		// The final record is the last state with the revision of the deletion.
		return Frame{Type: Deleted, Record: e.Record}, true, nil
	case was:
		return Frame{Type: Deleted, Record: e.Previous, Revision: e.Record.Modified}, true, nil
	}
	return Frame{}, false, nil
}

func (s *Stream) matches(rec *storage.Record) (bool, error) {
	if s.options.Matches == nil {
		return true, nil
	}
	return s.options.Matches(rec)
}

// Forward returns the frame to send for an event of a source that selects objects and makes
// bookmarks itself, and begins the stream with the first one. ok is false if it is not sent:
// a bookmark that the options do not ask for, or an event after the end.
func (s *Stream) Forward(f Frame) (_ Frame, ok bool) {
	if s.state == Starting {
		s.state = Live
	}
	return f, s.state == Live && (f.Type != Bookmark || s.options.Bookmarks > 0)
}

// Tick returns the bookmark that is due, if any. A stream without new events repeats
// its revision: the bookmark also shows that the watch is alive.
func (s *Stream) Tick(now time.Time) (Frame, bool) {
	if s.state != Live || s.due.IsZero() || now.Before(s.due) {
		return Frame{}, false
	}
	s.due = now.Add(s.options.Bookmarks)
	return s.bookmark()
}

func (s *Stream) bookmark() (Frame, bool) {
	if s.reached == 0 {
		return Frame{}, false // there is no revision yet
	}
	s.sent = s.reached
	return Frame{Type: Bookmark, Revision: s.reached}, true
}

// Finish ends the stream in order: with a last bookmark, if bookmarks are enabled and
// the revision is new, so that the client resumes from there.
func (s *Stream) Finish() (Frame, bool) {
	if s.state != Live {
		s.state = Ended
		return Frame{}, false
	}
	s.state = Ended
	if s.due.IsZero() || s.sent >= s.reached {
		return Frame{}, false
	}
	return s.bookmark()
}

// Fail ends the stream with an error frame.
func (s *Stream) Fail(err error) (Frame, bool) {
	if s.state == Ended {
		return Frame{}, false
	}
	s.state = Ended
	return Frame{Type: Error, Err: err}, true
}
