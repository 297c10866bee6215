// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reflector follows one collection of an API server: an initial state,
// then every change, for as long as it is told to.
//
// Machine is the protocol: a state machine without I/O, clock or randomness of
// its own, that says what to do next and is told how it went. Reflector runs a
// Machine against a Source and hands deltas to a Sink.
package reflector

import (
	"errors"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State of a Machine.
type State uint8

const (
	// Resolving looks the kind up by discovery.
	Resolving State = iota
	// Absent waits for a kind that the server does not have.
	Absent
	// Listing reads pages of a list.
	Listing
	// Streaming reads the initial state from a watch (WatchList).
	Streaming
	// Watching reads changes.
	Watching
	// BackingOff waits after a failure.
	BackingOff
)

func (s State) String() string {
	switch s {
	case Resolving:
		return "looking for the kind"
	case Absent:
		return "waiting for the kind to exist"
	case Listing:
		return "listing"
	case Streaming:
		return "streaming the initial state"
	case Watching:
		return "watching"
	case BackingOff:
		return "backing off"
	}
	return "unknown"
}

// Back-off between failures: doubled each time, with a jitter of up to the same
// again, until something succeeds.
const (
	minBackoff = 800 * time.Millisecond
	maxBackoff = 30 * time.Second
	// absentBackoff is the longest wait for a missing kind: asking is cheap and
	// people wait for it.
	absentBackoff = 10 * time.Second
)

// maxBadStreams is how often a watch may break at the same revision before the
// collection is listed again.
const maxBadStreams = 3

// Action is what a Machine wants done.
type Action uint8

const (
	// Resolve the kind, then call Resolved.
	Resolve Action = iota + 1
	// List a page (Continue, Limit), then call Page.
	List
	// Watch from Revision, with the initial state first when Initial is set;
	// then call Opened, and Delivered and Closed as things happen.
	Watch
	// Wait for Delay, then call Waited.
	Wait
)

// Step is an Action with its parameters.
type Step struct {
	Action   Action
	Continue string
	Limit    int64
	Revision string
	Initial  bool
	Delay    time.Duration
	// Gone, with Resolve or Wait, says that the kind has just been found
	// missing: its objects are gone.
	Gone bool
}

// Machine is not safe for concurrent use.
type Machine struct {
	// PageSize of lists.
	PageSize int64
	// WatchList asks for the initial state by a watch.
	WatchList bool
	// Random is uniform in [0,1).
	Random func() float64

	state    State
	resume   State // after BackingOff or Absent
	revision string
	cont     string
	whole    bool // list without pages: a continue token has expired
	failures int
	bad      int // streams broken since the last delivery
	err      error
	kindGone bool
	restarts int
	relists  int
}

// State is where the machine is.
func (m *Machine) State() State { return m.state }

// Err is why the machine is not watching, or nil.
func (m *Machine) Err() error { return m.err }

// Revision is the last one delivered.
func (m *Machine) Revision() string { return m.revision }

// Restarts and Relists count watches and lists after the first ones.
func (m *Machine) Restarts() int { return m.restarts }

// Relists counts lists after the first one.
func (m *Machine) Relists() int { return max(m.relists-1, 0) }

// Next is what to do now.
func (m *Machine) Next() Step {
	switch m.state {
	case Listing:
		step := Step{Action: List, Continue: m.cont, Limit: m.PageSize}
		if m.whole {
			step.Limit = 0
		}
		return step
	case Streaming:
		return Step{Action: Watch, Initial: true}
	case Watching:
		return Step{Action: Watch, Revision: m.revision}
	case BackingOff, Absent:
		gone := m.kindGone
		m.kindGone = false
		return Step{Action: Wait, Delay: m.delay(), Gone: gone}
	}
	return Step{Action: Resolve}
}

func (m *Machine) delay() time.Duration {
	limit := maxBackoff
	if m.state == Absent {
		limit = absentBackoff
	}
	d := minBackoff << min(max(m.failures-1, 0), 16)
	d = min(d, limit)
	return d + time.Duration(m.Random()*float64(d))
}

// Waited ends a Wait.
func (m *Machine) Waited() { m.state = m.resume }

// Resolved ends a Resolve.
func (m *Machine) Resolved(err error) {
	switch {
	case err == nil:
		if m.revision != "" {
			m.state = Watching // the kind was there all along
			return
		}
		m.start()
	case meta.IsNoMatchError(err):
		m.kindGone = m.revision != ""
		m.revision, m.cont = "", ""
		m.fail(Absent, Resolving, err)
	default:
		m.fail(BackingOff, Resolving, err)
	}
}

// start begins with the initial state.
func (m *Machine) start() {
	m.cont, m.revision = "", ""
	m.relists++
	m.state = Listing
	if m.WatchList {
		m.state = Streaming
	}
}

// fail notes err and waits before next.
func (m *Machine) fail(waiting, next State, err error) {
	m.failures++
	m.err = err
	m.state, m.resume = waiting, next
}

// Page ends a List: the page's continue token and the list's revision.
func (m *Machine) Page(cont, revision string, err error) {
	switch {
	case err == nil && cont != "":
		m.cont = cont
	case err == nil:
		m.cont, m.whole = "", false
		m.revision = revision
		m.succeeded()
		m.state = Watching
	case isGone(err) && m.cont != "":
		// The snapshot behind the token is too old: take it in one piece.
		m.cont, m.whole = "", true
		m.fail(BackingOff, Listing, err)
	case isMissing(err):
		m.cont = ""
		m.fail(BackingOff, Resolving, err)
	default:
		m.cont = "" // what has been listed so far is listed again
		m.fail(BackingOff, Listing, err)
	}
}

// ListComplete says that the last Page was the last one.
func (m *Machine) ListComplete() bool { return m.state == Watching }

// Opened tells how opening a watch went.
func (m *Machine) Opened(err error) {
	switch {
	case err == nil:
		m.err = nil
	case isGone(err):
		m.relist(err)
	case isMissing(err):
		m.resumeAfterResolve(err)
	case m.state == Streaming && refusesWatchList(err):
		m.WatchList = false
		m.state = Listing
	default:
		m.fail(BackingOff, m.state, err)
	}
}

// resumeAfterResolve asks discovery whether the kind is still there: a server
// that is starting may answer 404 for a moment.
func (m *Machine) resumeAfterResolve(err error) {
	m.fail(BackingOff, Resolving, err)
}

// relist starts over: at once the first time, then with a back-off.
func (m *Machine) relist(err error) {
	m.err = err
	if m.failures == 0 {
		m.failures++
		m.start()
		return
	}
	m.start()
	m.fail(BackingOff, m.state, err)
}

// Delivered says that an event, or a bookmark, of this revision has come.
func (m *Machine) Delivered(revision string) {
	if m.state == Streaming {
		return // not a state yet: an interrupted stream starts over
	}
	if revision != "" {
		m.revision = revision
	}
	m.succeeded()
}

// InitialEnd says that the bookmark that ends an initial state has come.
func (m *Machine) InitialEnd(revision string) {
	m.revision = revision
	m.succeeded()
	m.state = Watching
}

func (m *Machine) succeeded() {
	m.failures, m.bad, m.err = 0, 0, nil
}

// Closed tells how a watch ended, after lasting for so long. io.EOF is a server
// that has had enough; events is how many there were.
func (m *Machine) Closed(err error, lasted time.Duration, events int) {
	m.restarts++
	switch {
	case isGone(err):
		m.relist(err)
	case isMissing(err):
		m.resumeAfterResolve(err)
	case m.state == Streaming && refusesWatchList(err):
		m.WatchList = false
		m.state = Listing
	case errors.Is(err, io.EOF) && (events > 0 || lasted >= time.Second) && m.state == Watching:
		// The usual end: go on from here at once.
	case errors.Is(err, ErrIdle) && m.state == Watching:
		m.err = err
	default:
		m.bad++
		if m.bad >= maxBadStreams && m.state == Watching {
			m.bad = 0
			m.start()
		}
		m.fail(BackingOff, m.state, err)
	}
}

// ErrIdle ends a watch on which nothing has come for too long.
var ErrIdle = errors.New("no event or bookmark for too long: the connection is taken for dead")

// isGone says that a revision is too old to continue from.
func isGone(err error) bool { return apierrors.IsGone(err) || apierrors.IsResourceExpired(err) }

func isMissing(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// refusesWatchList recognises servers that do not know sendInitialEvents.
func refusesWatchList(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	return s.Reason == metav1.StatusReasonInvalid || s.Code == http.StatusUnprocessableEntity || s.Code == http.StatusBadRequest
}
