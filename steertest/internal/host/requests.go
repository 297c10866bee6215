// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/steertest/internal/permissions"
)

// Requests notes requests in order. It is safe for concurrent use.
type Requests struct {
	mu    sync.Mutex
	lines []string
}

func (r *Requests) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// Count is how many there are.
func (r *Requests) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

// Since returns what came after the first n.
func (r *Requests) Since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines[n:])
}

// Noted notes the writes that are sent, but for those of leader election, and the rights that
// requests need.
type Noted struct {
	http.RoundTripper
	To     *Requests
	Rights *permissions.Rights
}

// RoundTrip implements http.RoundTripper.
func (n *Noted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.HasSuffix(r.UserAgent(), "/leader-election") {
		n.To.note(r.Method + " " + r.URL.Path)
	}
	resp, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		n.Rights.NoteRequest(r.Method, r.URL, resp.StatusCode)
	}
	return resp, err
}
