// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/steer-dev/steer/storage"
)

const (
	// leadsPath is where a server says whether it executes requests.
	leadsPath = "/steer.dev/leads"
	// askEvery is how often a server asks the leader, and askWithin when it has no answer.
	askEvery, askWithin = 2 * time.Second, 3 * time.Second
)

// errNoLeader: no server is known to execute requests.
var errNoLeader = errors.New("no server leads: requests that change something wait for one")

// view is what a server that does not lead knows of the leader.
type view struct {
	err atomic.Pointer[error] // nil: it was never asked
}

// Ready returns nil while requests that change something are executed: here, or by the leader,
// which this server has reached a moment ago. Otherwise it returns why they are not.
func (s *Server) Ready() error {
	s.mu.Lock()
	now := s.phase
	s.mu.Unlock()
	switch now {
	case leading:
		return nil
	case takingOver:
		return errors.New("this server is taking over: requests that change something wait")
	}
	if err := s.view.err.Load(); err != nil {
		return *err
	}
	return errNoLeader
}

// Ask asks the leader once whether it executes requests, for [Server.Ready]; where this server
// is taking over it waits a moment for that.
func (s *Server) Ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	leave, err := s.Enter(ctx)
	if leave != nil {
		leave()
		err = errNoLeader // as it is when this term ends
	} else if err == nil {
		leader, _ := s.options.Store.Leader()
		err = s.ask(ctx, leader)
	}
	s.view.err.Store(&err)
}

func (s *Server) ask(ctx context.Context, leader storage.Leader) error {
	if leader.Term == 0 || leader.Identity == s.options.Identity {
		return errNoLeader
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+leader.Address+leadsPath, nil)
	if err != nil {
		return fmt.Errorf("leadership: ask the server at %q: %w", leader.Address, err)
	}
	request.Header.Set(protocolHeader, s.protocol)
	answer, err := s.transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("the server that leads is not reached: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the server at %s, which was elected, does not execute requests: %s", leader.Address, answer.Status)
	}
	return nil
}

// keepAsking asks the leader every moment, and as soon as there is another, until ctx ends.
func (s *Server) keepAsking(ctx context.Context) {
	for ctx.Err() == nil {
		_, elected := s.options.Store.Leader()
		s.Ask(ctx)
		again := askEvery
		if s.Ready() != nil {
			again = pause
		}
		_ = s.await(ctx, elected, again)
	}
}

// serveLeads answers [Server.Ask] of another server, once this one has taken over.
func (s *Server) serveLeads(w http.ResponseWriter, r *http.Request) {
	leave, err := s.Enter(r.Context())
	if err != nil || leave == nil {
		http.Error(w, "this server does not lead", http.StatusServiceUnavailable)
		return
	}
	leave()
	w.WriteHeader(http.StatusNoContent)
}
