// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	errGone    = apierrors.NewResourceExpired("too old")
	errMissing = apierrors.NewNotFound(schema.GroupResource{}, "x")
	errNoKind  = &meta.NoKindMatchError{}
	errOther   = errors.New("connection refused")
	errInvalid = apierrors.NewInvalid(schema.GroupKind{}, "", nil)
)

// driver tells a machine what happens, and writes down what it wants.
type driver struct {
	t *testing.T
	m Machine
}

func newDriver(t *testing.T) *driver {
	return &driver{t, Machine{PageSize: 2, Random: func() float64 { return 0 }}}
}

func (d *driver) wants(want string) {
	d.t.Helper()
	step := d.m.Next()
	got := ""
	switch step.Action {
	case Resolve:
		got = "resolve"
	case List:
		got = fmt.Sprintf("list limit=%d continue=%s", step.Limit, step.Continue)
	case Watch:
		got = "watch from " + step.Revision
		if step.Initial {
			got = "watch with initial state"
		}
	case Wait:
		got = "wait " + step.Delay.String()
		if step.Gone {
			got += " gone"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Fatalf("in state %q: (-want +got)\n%s", d.m.State(), diff)
	}
}

// watching brings the machine to a watch from 10.
func (d *driver) watching() {
	d.t.Helper()
	d.m.Resolved(nil)
	d.m.Page("", "10", nil)
	d.wants("watch from 10")
	d.m.Opened(nil)
}

func TestListThenWatch(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.wants("resolve")
	d.m.Resolved(nil)
	d.wants("list limit=2 continue=")
	d.m.Page("more", "10", nil)
	d.wants("list limit=2 continue=more")
	d.m.Page("", "10", nil)
	d.wants("watch from 10")
	d.m.Opened(nil)
	d.m.Delivered("12")
	d.m.Closed(io.EOF, time.Minute, 1)
	d.wants("watch from 12")
}

func TestExpiredContinueTokenListsInOnePiece(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.m.Resolved(nil)
	d.m.Page("more", "10", nil)
	d.m.Page("", "", errGone)
	d.wants("wait 800ms")
	d.m.Waited()
	d.wants("list limit=0 continue=")
	d.m.Page("", "20", nil)
	d.wants("watch from 20")
}

func TestWatchListAndItsRefusal(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.m.WatchList = true
	d.m.Resolved(nil)
	d.wants("watch with initial state")
	d.m.Opened(nil)
	d.m.Delivered("5")
	d.m.Closed(io.ErrUnexpectedEOF, time.Minute, 1)
	d.wants("wait 800ms")
	d.m.Waited()
	d.wants("watch with initial state") // half a state is none
	d.m.Opened(nil)
	d.m.InitialEnd("9")
	d.m.Closed(io.EOF, time.Minute, 1)
	d.wants("watch from 9")

	d = newDriver(t)
	d.m.WatchList = true
	d.m.Resolved(nil)
	d.m.Opened(errInvalid)
	d.wants("list limit=2 continue=")
}

func TestExpiredRevisionRelistsAtOnceAndThenWithBackoff(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.watching()
	d.m.Closed(errGone, time.Minute, 0)
	d.wants("list limit=2 continue=")
	d.m.Page("", "20", nil)
	d.m.Opened(errGone)
	d.wants("list limit=2 continue=")
	d.m.Page("", "", errOther)
	d.wants("wait 1.6s")
}

func TestKindThatComesAndGoes(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.m.Resolved(errNoKind)
	d.wants("wait 800ms")
	d.m.Waited()
	d.wants("resolve")
	d.watching()
	d.m.Closed(errMissing, time.Minute, 1)
	d.wants("wait 800ms")
	d.m.Waited()
	d.wants("resolve")
	d.m.Resolved(nil) // a server that was starting: nothing is lost
	d.wants("watch from 10")
	d.m.Opened(errMissing)
	d.wants("wait 1.6s")
	d.m.Waited()
	d.m.Resolved(errNoKind)
	d.wants("wait 3.2s gone")
	d.wants("wait 3.2s") // told once
	d.m.Waited()
	d.m.Resolved(nil)
	d.wants("list limit=2 continue=")
}

func TestBackoffGrowsToItsLimitAndEndsWithSuccess(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.m.Resolved(nil)
	for _, want := range []string{"800ms", "1.6s", "3.2s", "6.4s", "12.8s", "25.6s", "30s", "30s"} {
		d.m.Page("", "", errOther)
		d.wants("wait " + want)
		d.m.Waited()
	}
	d.m.Page("", "10", nil)
	d.m.Opened(errOther)
	d.wants("wait 800ms")
	d.m.Random = func() float64 { return 0.5 }
	d.wants("wait 1.2s")
}

func TestStreamThatBreaksAgainAndAgainIsListedAnew(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.watching()
	for range maxBadStreams - 1 {
		d.m.Closed(errOther, time.Minute, 0)
		d.m.Waited()
		if step := d.m.Next(); step.Action != Watch || step.Revision != "10" {
			t.Fatalf("wants %+v, want to resume", step)
		}
		d.m.Opened(nil)
	}
	d.m.Closed(errOther, time.Minute, 0)
	d.m.Waited()
	d.wants("list limit=2 continue=")
}

func TestWatchThatEndsAtOnceIsNotAHotLoop(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.watching()
	d.m.Closed(io.EOF, time.Millisecond, 0)
	d.wants("wait 800ms")
}

func TestSilentWatchIsResumed(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.watching()
	d.m.Closed(ErrIdle, time.Hour, 0)
	d.wants("watch from 10")
	if !errors.Is(d.m.Err(), ErrIdle) {
		t.Fatalf("error %v", d.m.Err())
	}
}
