// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"slices"
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

func red(rec *storage.Record) bool { return strings.HasPrefix(string(rec.Value), "red") }

func TestSelectedSetGainsKeepsAndLosesObjects(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{Matches: red, After: 1})
	for range s.Start(noTime, 1, nil) {
		t.Fatal("a stream from a revision has no initial frames")
	}
	red1, red2, blue, red3 := record("a", "red1", 2), record("a", "red2", 3), record("a", "blue", 4), record("a", "red3", 5)
	got := show(s.Batch(storage.Batch{Revision: 7, Events: []storage.Event{
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
	present := slices.Values([]*storage.Record{record("a", "red", 3), record("b", "blue", 4)})
	got := show(slices.Collect(s.Start(noTime, 9, present))...)
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
	for range s.Start(start, 1, nil) {
		t.Fatal("unexpected frame")
	}
	if _, ok := s.Tick(start.Add(59 * time.Second)); ok {
		t.Error("a bookmark before it was due")
	}
	s.Batch(storage.Batch{Revision: 5})
	frame, ok := s.Tick(s.Due())
	if !ok || frame.Revision != 5 {
		t.Errorf("due bookmark: %+v, %v", frame, ok)
	}
	if _, ok := s.Finish(); ok {
		t.Error("a last bookmark without news")
	}

	s = watch.New(watch.Options{After: 1, Bookmarks: time.Minute})
	for range s.Start(start, 1, nil) {
		t.Fatal("unexpected frame")
	}
	s.Batch(storage.Batch{Revision: 5})
	if frame, ok := s.Finish(); !ok || frame.Revision != 5 || s.State() != watch.Ended {
		t.Errorf("last bookmark: %+v, %v", frame, ok)
	}
}

func TestStreamEmitsNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := watch.New(watch.Options{After: 1, Bookmarks: time.Minute})
	for range s.Start(noTime, 1, nil) {
		t.Fatal("unexpected frame")
	}
	if frame, ok := s.Fail(storage.ErrCompacted); !ok || frame.Type != watch.Error {
		t.Errorf("failure: %+v, %v", frame, ok)
	}
	if _, ok := s.Fail(storage.ErrCompacted); ok {
		t.Error("failed twice")
	}
	if frames := s.Batch(storage.Batch{Revision: 9, Events: []storage.Event{{Record: record("a", "x", 9)}}}); len(frames) > 0 {
		t.Errorf("frames after the end: %v", frames)
	}
}
