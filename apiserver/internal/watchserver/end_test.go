// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/steer-dev/steer/storage"
)

// putUnknown stores an object in a version that its resource does not have.
func (f *fixture) putUnknown(name string) {
	f.Helper()
	f.putKey("default/" + name)
}

func (f *fixture) putKey(name string) {
	f.Helper()
	const before = `{"apiVersion":"v0","kind":"ConfigMap","metadata":{"resourceVersion":"`
	w := storage.Write{
		Key: storage.Key{Bucket: "configmaps", Name: name}, Expect: storage.AnyRevision,
		Value: fmt.Appendf(nil, before+`"}}`), Stamp: len(before),
	}
	if _, err := f.store.Commit(f.Context(), w); err != nil {
		f.Fatal(err)
	}
}

// TestServeSendsNothingAfterAnError: neither the events that follow one that cannot be
// encoded, nor a bookmark.
func TestServeSendsNothingAfterAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after storage.Revision
		good  int
	}{
		{"present objects", -1, 3}, {"changes", 1, 3}, {"changes of several batches", 1, 600},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(f *fixture) {
				f.put("first", "{}")
				f.putUnknown("bad")
				for i := range c.good {
					f.put(fmt.Sprint("good-", i), "{}")
				}
				f.putKey("other/bad")  // the store's revision is newer than the last event
				f.onStatus = f.replace // the watch is told to end while it sends the error
				w := f.watch(asJSON, c.after, func(o *internalversion.ListOptions) { o.AllowWatchBookmarks = true })
				w.end()
				w.expect("the events", "ERROR InternalError")
			})
		})
	}
}

// TestServeEndsWhereSelectionFails: an object that cannot be decoded is neither selected nor
// gone.
func TestServeEndsWhereSelectionFails(t *testing.T) {
	selected := func(o *internalversion.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("data.a", "b")
	}
	inTime(t, func(f *fixture) {
		f.put("a", "{}")
		w := f.watch(asJSON, -1, selected)
		w.expect("at the start", "ADDED a@1")
		f.put("b", "{}")
		f.putUnknown("a")
		w.end()
		w.expect("as a selected object becomes unreadable", "ADDED b@2, ERROR InternalError")
		w = f.watch(asJSON, -1, selected)
		w.end()
		w.expect("of an unreadable object", "ERROR InternalError")
	})
}

// TestServeEndsWhileChangesKeepComing: after what was committed before its end.
func TestServeEndsWhileChangesKeepComing(t *testing.T) {
	inTime(t, func(f *fixture) {
		writes := 0
		f.onWrite = func() {
			if writes++; writes < 1000 {
				f.put(fmt.Sprint("next-", writes), "{}")
			}
			f.replace()
			synctest.Wait() // until the watch is told to end
		}
		w := f.watch(asJSON, 0, nil)
		w.expect("at the start", "")
		f.put("first", "{}")
		w.end()
		if got := w.next(); got != "ADDED first@1, ADDED next-1@2" {
			f.Errorf("the events are %.200s", got)
		}
	})
}
