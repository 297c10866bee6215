// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

func record(name, value string, at storage.Revision) *storage.Record {
	return &storage.Record{Key: storage.Key{Bucket: "b", Name: name}, Value: []byte(value), Modified: at}
}

func show(frames ...watch.Frame) []string {
	var out []string
	for _, f := range frames {
		text := string(f.Type)
		if f.Record != nil {
			text += " " + f.Record.Key.Name + "=" + string(f.Record.Value)
		}
		if f.Revision != 0 {
			text += " @" + time.Duration(f.Revision).String()
		}
		if f.InitialEnd {
			text += " end"
		}
		out = append(out, text)
	}
	return out
}

var noTime time.Time

func red(rec *storage.Record) (bool, error) {
	if string(rec.Value) == "unreadable" {
		return false, errUnreadable
	}
	return strings.HasPrefix(string(rec.Value), "red"), nil
}

var errUnreadable = errors.New("unreadable")

// batch returns the frames of a batch without an unreadable record.
func batch(t *testing.T, s *watch.Stream, b storage.Batch) []watch.Frame {
	t.Helper()
	frames, err := s.Batch(b)
	if err != nil {
		t.Error(err)
	}
	return frames
}

// begin starts a stream, and returns its frames and its error.
func begin(s *watch.Stream, now time.Time, at storage.Revision, present ...*storage.Record) (frames []watch.Frame, err error) {
	records := func(yield func(*storage.Record, error) bool) {
		for _, rec := range present {
			if !yield(rec, nil) {
				return
			}
		}
	}
	for frame, failed := range s.Start(now, at, records) {
		if err = failed; err == nil {
			frames = append(frames, frame)
		}
	}
	return frames, err
}

func TestSelectedSetGainsKeepsAndLosesObjects(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{Matches: red, After: 1})
	if frames, err := begin(s, noTime, 1); len(frames) > 0 || err != nil {
		t.Fatalf("a stream from a revision begins with %v, %v", frames, err)
	}
	red1, red2, blue, red3 := record("a", "red1", 2), record("a", "red2", 3), record("a", "blue", 4), record("a", "red3", 5)
	got := show(batch(t, s, storage.Batch{Revision: 7, Events: []storage.Event{
		{Record: record("a", "old", 1)}, // already seen
		{Record: red1},
		{Record: red2, Previous: red1},
		{Record: blue, Previous: red2},
		{Record: red3, Previous: blue},
		{Record: record("a", "red3", 6), Previous: red3, Deleted: true},
		{Record: record("b", "blue", 7)},
	}})...)
	want := []string{"ADDED a=red1", "MODIFIED a=red2", "DELETED a=red2 @4ns", "ADDED a=red3", "DELETED a=red3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Reached() != 7 {
		t.Errorf("reached %d", s.Reached())
	}
}

func TestInitialObjectsEndWithABookmark(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{Matches: red, Initial: true, InitialEnd: true, Bookmarks: time.Minute})
	frames, err := begin(s, noTime, 9, record("a", "red", 3), record("b", "blue", 4))
	if err != nil {
		t.Error(err)
	}
	got := show(frames...)
	if diff := cmp.Diff([]string{"ADDED a=red", "BOOKMARK @9ns end"}, got); diff != "" {
		t.Error(diff)
	}
	if s.State() != watch.Live {
		t.Errorf("state %v", s.State())
	}
}

func TestBookmarksComeWhenDueAndAtTheEnd(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	s := watch.New(watch.Options{After: 1, Bookmarks: time.Minute})
	if frames, err := begin(s, start, 1); len(frames) > 0 || err != nil {
		t.Fatalf("the stream begins with %v, %v", frames, err)
	}
	if _, ok := s.Tick(start.Add(59 * time.Second)); ok {
		t.Error("a bookmark before it was due")
	}
	batch(t, s, storage.Batch{Revision: 5})
	frame, ok := s.Tick(s.Due())
	if !ok || frame.Revision != 5 {
		t.Errorf("due bookmark: %+v, %v", frame, ok)
	}
	if _, ok := s.Finish(); ok {
		t.Error("a last bookmark without news")
	}

	s = watch.New(watch.Options{After: 1, Bookmarks: time.Minute})
	if frames, err := begin(s, start, 1); len(frames) > 0 || err != nil {
		t.Fatalf("the stream begins with %v, %v", frames, err)
	}
	batch(t, s, storage.Batch{Revision: 5})
	if frame, ok := s.Finish(); !ok || frame.Revision != 5 || s.State() != watch.Ended {
		t.Errorf("last bookmark: %+v, %v", frame, ok)
	}
}

func TestStreamEmitsNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{After: 1, Bookmarks: time.Minute})
	if frames, err := begin(s, noTime, 1); len(frames) > 0 || err != nil {
		t.Fatalf("the stream begins with %v, %v", frames, err)
	}
	if frame, ok := s.Fail(storage.ErrCompacted); !ok || frame.Type != watch.Error {
		t.Errorf("failure: %+v, %v", frame, ok)
	}
	if _, ok := s.Fail(storage.ErrCompacted); ok {
		t.Error("failed twice")
	}
	if frames := batch(t, s, storage.Batch{Revision: 9, Events: []storage.Event{{Record: record("a", "x", 9)}}}); len(frames) > 0 {
		t.Errorf("frames after the end: %v", frames)
	}
}

func TestStreamEndsWhereItsSelectionFails(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{Matches: red, After: 1})
	if _, err := begin(s, noTime, 1); err != nil {
		t.Fatal(err)
	}
	unreadable := record("b", "unreadable", 3)
	frames, err := s.Batch(storage.Batch{Revision: 4, Events: []storage.Event{
		{Record: record("a", "red", 2)}, {Record: unreadable}, {Record: record("c", "red", 4)},
	}})
	if diff := cmp.Diff([]string{"ADDED a=red"}, show(frames...)); diff != "" || !errors.Is(err, errUnreadable) {
		t.Errorf("changes: %v %s", err, diff)
	}
	if frame, ok := s.Fail(err); !ok || !errors.Is(frame.Err, errUnreadable) {
		t.Errorf("the last frame is %+v, %v", frame, ok)
	}

	was := watch.New(watch.Options{Matches: red, After: 3})
	if _, err := begin(was, noTime, 3); err != nil {
		t.Fatal(err)
	}
	if frames, err := was.Batch(storage.Batch{Revision: 4, Events: []storage.Event{{Record: record("b", "red", 4), Previous: unreadable}}}); len(frames) > 0 || !errors.Is(err, errUnreadable) {
		t.Errorf("a change of an unreadable object: %v, %v", frames, err)
	}

	initial := watch.New(watch.Options{Matches: red, Initial: true, InitialEnd: true, Bookmarks: time.Minute})
	frames, err = begin(initial, noTime, 9, record("a", "red", 2), unreadable, record("c", "red", 4))
	if diff := cmp.Diff([]string{"ADDED a=red"}, show(frames...)); diff != "" || !errors.Is(err, errUnreadable) {
		t.Errorf("present objects: %v %s", err, diff)
	}
	if frame, ok := initial.Fail(err); !ok || frame.Type != watch.Error {
		t.Errorf("the last frame is %+v, %v", frame, ok)
	}
}

func TestStreamThatIsLeftEarlyCanFail(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{Initial: true, InitialEnd: true, Bookmarks: time.Minute})
	present := func(yield func(*storage.Record, error) bool) {
		_ = yield(record("a", "red", 2), nil) && yield(record("b", "red", 3), nil)
	}
	for range s.Start(noTime, 9, present) {
		break
	}
	if frame, ok := s.Fail(errUnreadable); !ok || frame.Type != watch.Error {
		t.Errorf("the last frame is %+v, %v", frame, ok)
	}
}

func TestForwardedEventsKeepTheProtocol(t *testing.T) {
	t.Parallel()
	added, bookmark := watch.Frame{Type: watch.Added, Record: record("a", "red", 2)}, watch.Frame{Type: watch.Bookmark, Revision: 3}
	s := watch.New(watch.Options{Bookmarks: time.Minute})
	for _, f := range []watch.Frame{added, bookmark} {
		if got, ok := s.Forward(f); !ok || got != f || s.State() != watch.Live {
			t.Errorf("%s is forwarded as %+v, %v in state %v", f.Type, got, ok, s.State())
		}
	}
	if frame, ok := s.Fail(errUnreadable); !ok || frame.Type != watch.Error {
		t.Errorf("the last frame is %+v, %v", frame, ok)
	}
	if got, ok := s.Forward(added); ok {
		t.Errorf("%+v is forwarded after the end", got)
	}
	if got, ok := watch.New(watch.Options{}).Forward(bookmark); ok {
		t.Errorf("%+v is forwarded to a client that does not want bookmarks", got)
	}
}
