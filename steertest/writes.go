// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/steertest/internal/permissions"
)

// shownWrites is how many requests a failure lists.
const shownWrites = 10

// ExpectNoWrites fails the test when the operator writes although nothing is left
// to do: it waits until everything has settled, restarts the operator, waits until
// that has reconciled everything anew, and lists the requests, other than reads, that
// it has sent since. Events count. An operator that runs with --leader-elect writes
// its lease, and does not pass.
func (e *Env) ExpectNoWrites() {
	e.Helper()
	e.Settled()
	e.StopOperator()
	before := e.writes.count()
	e.StartOperator()
	e.Settled()
	if more := e.writes.since(before); len(more) > 0 {
		e.Errorf("steertest: writes of the operator after a restart, with nothing to do: %d\n  %s", len(more), strings.Join(more[:min(len(more), shownWrites)], "\n  "))
	}
}

// requests notes requests in order. It is safe for concurrent use.
type requests struct {
	mu    sync.Mutex
	lines []string
}

func (r *requests) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// since returns what came after the first n.
func (r *requests) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines[n:])
}

// noted notes the writes that are sent, and the rights that requests need.
type noted struct {
	http.RoundTripper
	to     *requests
	rights *permissions.Rights
}

// RoundTrip implements http.RoundTripper.
func (n *noted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		n.to.note(r.Method + " " + r.URL.Path)
	}
	resp, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		n.rights.NoteRequest(r.Method, r.URL, resp.StatusCode)
	}
	return resp, err
}
