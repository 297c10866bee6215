// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestMirrorListsAndWatches compares what a server is asked, and when, with how it answers.
func TestMirrorListsAndWatches(t *testing.T) {
	t.Parallel()
	event := func(kind, revision string) string {
		o := note("a/n", "1")
		o.ResourceVersion = revision
		return eventOf(t, kind, o)
	}
	big := note("a/big", "9")
	big.Annotations = map[string]string{"x": strings.Repeat("x", mostEventBytes+1024)}
	for _, test := range []struct {
		name   string
		begins []string
		refuse string // requests that begin so
		err    error
		until  time.Duration
		want   string
	}{
		{"watch stays open", nil, "", nil, time.Hour, "0s LIST, 0s WATCH 5"},
		{"watch goes on from the last event", []string{event("MODIFIED", "6") + event("ADDED", "8"), event("BOOKMARK", "12"), ""}, "", nil, time.Hour,
			"0s LIST, 0s WATCH 5, 500ms WATCH 8, 1s WATCH 12, 1.5s WATCH 12"},
		{"event without revision", []string{event("MODIFIED", "6") + event("DELETED", "")}, "", nil, time.Hour, "0s LIST, 0s WATCH 5, 500ms WATCH 6"},
		{"watch ends with an error", []string{event("MODIFIED", "6") + event("ERROR", "7")}, "", nil, time.Hour, "0s LIST, 0s WATCH 5, 500ms LIST, 500ms WATCH 5"},
		{"watch breaks off within an event", []string{event("MODIFIED", "6")[:20]}, "", nil, time.Hour, "0s LIST, 0s WATCH 5, 500ms LIST, 500ms WATCH 5"},
		{"event that is too big", []string{event("MODIFIED", "6") + eventOf(t, "ADDED", big)}, "", nil, time.Hour, "0s LIST, 0s WATCH 5, 500ms LIST, 500ms WATCH 5"},
		{"watch is not available", nil, "WATCH", apierrors.NewServiceUnavailable("later"), 100 * time.Second,
			"0s LIST, 0s WATCH 5, 500ms WATCH 5, 1.5s WATCH 5, 3.5s WATCH 5, 7.5s WATCH 5, 15.5s WATCH 5, 31.5s WATCH 5, 1m1.5s WATCH 5, 1m31.5s WATCH 5"},
		{"too many watches", nil, "WATCH", apierrors.NewTooManyRequestsError("later"), 2 * time.Second,
			"0s LIST, 0s WATCH 5, 500ms WATCH 5, 1.5s WATCH 5"},
		{"revision is too old", nil, "WATCH", apierrors.NewResourceExpired("too old"), 2 * time.Second,
			"0s LIST, 0s WATCH 5, 500ms LIST, 500ms WATCH 5, 1.5s LIST, 1.5s WATCH 5"},
		{"list is refused", nil, "LIST", apierrors.NewForbidden(schema.GroupResource{Resource: "notes"}, "", nil), 8 * time.Second,
			"0s LIST, 500ms LIST, 1.5s LIST, 3.5s LIST, 7.5s LIST"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t)
				o.server.begins = test.begins // nothing is asked yet
				o.server.refuses(test.refuse, test.err)
				o.settle()
				o.pass(test.until)
				expect(t, "the server was asked", test.want, strings.Join(o.server.requests(), ", "))
			})
		})
	}
}

// TestMirrorTriesSoonAfterALongWatch, and not after the delay that earlier failures led to.
func TestMirrorTriesSoonAfterALongWatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		lasts time.Duration
		delay time.Duration
	}{
		{"short", lastDelay, 16 * time.Second},
		{"long", lastDelay + 1, firstDelay},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t)
				o.server.refuses("", apierrors.NewServiceUnavailable("later"))
				o.settle()
				o.pass(8 * time.Second) // tried at 0, 0.5, 1.5, 3.5 and 7.5 seconds; next at 15.5
				o.server.refuses("", nil)
				o.pass(8 * time.Second)
				o.pass(test.lasts - 500*time.Millisecond)
				o.server.requests()
				ended := time.Since(o.server.begun)
				o.server.end(errors.New("connection reset"))
				o.pass(time.Minute)
				want := (ended + test.delay).String()
				expect(t, "the server was asked", want+" LIST, "+want+" WATCH 5", strings.Join(o.server.requests(), ", "))
			})
		})
	}
}

// TestMirrorSeesWhatHasChanged: the owner of an object here changes there.
func TestMirrorSeesWhatHasChanged(t *testing.T) {
	t.Parallel()
	const again = lookForN + "\n" + deleteHere
	for _, test := range []struct {
		name string
		then func(*outside)
		want string
	}{
		{"event of its deletion", func(o *outside) { o.server.tell("DELETED", note("a/n", "1")) }, again},
		{"event of its successor", func(o *outside) { o.server.tell("MODIFIED", note("a/n", "9")) }, again},
		{"event of a change", func(o *outside) { o.server.tell("MODIFIED", note("a/n", "1", ownedBy("child", "2"))) }, ""},
		{"bookmark", func(o *outside) {
			o.server.tell("BOOKMARK", note("a/n", "9"))
		}, ""},
		{"deletion and creation under the same uid", func(o *outside) {
			o.server.tell("DELETED", note("a/n", "1"))
			o.server.tell("ADDED", note("a/n", "1"))
		}, ""},
		{"list without it", func(o *outside) {
			o.server.replace()
			o.server.end(errors.New("connection reset"))
			o.pass(time.Second)
		}, again},
		{"list with its successor", func(o *outside) {
			o.server.replace(note("a/n", "9"))
			o.server.end(errors.New("connection reset"))
			o.pass(time.Second)
		}, again},
		{"server that does not answer any more", func(o *outside) {
			o.server.refuses("", apierrors.NewServiceUnavailable("later"))
			o.server.end(errors.New("connection reset"))
			o.pass(time.Hour)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t, note("a/n", "1"))
				o.settle()
				o.object("a/child", "2", ownedByNote("n", "1"))
				expect(t, "requests", "", o.settle())
				test.then(o)
				expect(t, "requests after the change", test.want, o.settle())
			})
		})
	}
}

// TestMirrorListingAgainHasOwnersAskedForAgain: one that was there, and that the mirror has
// never seen, may have gone unseen.
func TestMirrorListingAgainHasOwnersAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t)
		o.settle()
		o.server.replace(note("a/n", "1")) // its event is late
		o.object("a/child", "2", ownedByNote("n", "1"))
		o.object("a/other", "3", ownedByNote("m", "8"), func(m *metav1.ObjectMeta) { m.Finalizers = []string{"x/y"} })
		expect(t, "requests", lookForN+"\nGET "+notesPath+"m: look for owner 8\nDELETE /api/v1/namespaces/a/configmaps/other: delete Background", o.settle())
		o.object("a/child", "2", ownedByNote("n", "1"), func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"x": "y"} })
		expect(t, "requests for an owner that was there", "", o.settle())
		o.server.replace()
		o.server.end(errors.New("connection reset"))
		o.pass(time.Second)
		expect(t, "requests after the list", lookForN+"\n"+deleteHere, o.settle())
		o.object("a/other", "3", ownedByNote("m", "8"))
		expect(t, "requests for an owner that was absent", "DELETE /api/v1/namespaces/a/configmaps/other: delete Background", o.settle())
	})
}

// TestMirrorEndsWithItsWatch: after the end of the collector nothing is asked, and what runs
// has ended.
func TestMirrorEndsWithItsWatch(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]time.Duration{"while it watches": 0, "while it waits": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t)
				if until > 0 {
					o.server.refuses("", errors.New("connection refused"))
				}
				o.settle()
				o.pass(until)
				o.server.requests()
				o.collector.Close()
				o.pass(time.Hour)
				if diff := cmp.Diff([]string(nil), o.server.requests()); diff != "" {
					t.Errorf("the server was asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestMirrorOutdatesEarlierAnswers: an owner that was there when its server was asked is asked
// for again once the mirror has seen it go.
func TestMirrorOutdatesEarlierAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t)
		o.settle()
		o.server.replace(note("a/n", "1")) // its event is late
		o.object("a/child", "2", ownedByNote("n", "1"))
		expect(t, "requests", lookForN, o.settle())
		o.server.tell("ADDED", note("a/n", "1"))
		expect(t, "requests once the mirror has it", "", o.settle())
		o.server.tell("DELETED", note("a/n", "1"))
		expect(t, "requests once it has gone", lookForN+"\n"+deleteHere, o.settle())
	})
}
