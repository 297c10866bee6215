// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

const (
	// againAfter is when a server campaigns again that could not, or could not take over.
	againAfter = time.Second
	// resignWithin bounds the end of a term in the database, which the lease ends otherwise.
	resignWithin = 5 * time.Second
)

// takeOverKey marks the requests of [Options.TakeOver]; forwardedKey those that another
// server has passed on, with the header of the answer.
type (
	takeOverKey  struct{}
	forwardedKey struct{}
)

// Run follows, campaigns, and leads when it is elected, until ctx ends. Then it lets the
// requests that it executes end, and resigns. The address is where others reach this server.
func (s *Server) Run(ctx context.Context, address string) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { s.keepUp(ctx) })
	following.Go(func() { s.keepAsking(ctx) })
	as := storage.Member{Identity: s.options.Identity, Address: address}
	for ctx.Err() == nil {
		err := s.CheckKeys()
		var term storage.Term
		if err == nil {
			term, err = s.options.Store.Campaign(ctx, as)
		}
		if err == nil {
			err = s.lead(ctx, term)
		}
		if err != nil && ctx.Err() == nil {
			s.options.Log.Error("the server does not lead", "err", err)
			sleep(ctx, againAfter)
		}
	}
}

// sleep waits for a while, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// lead serves a term.
func (s *Server) lead(ctx context.Context, term storage.Term) error {
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-term.Done():
			cancel()
		case <-during.Done():
		}
	}()
	s.options.Log.Info("this server leads", "identity", s.options.Identity, "term", term.Revision())
	s.become(takingOver)
	err := s.takeOver(context.WithValue(during, takeOverKey{}, true))
	if err == nil {
		s.become(leading)
		s.options.Lead(during)
		<-during.Done()
	}
	s.become(following)
	s.drain()
	s.options.Log.Info("this server does not lead any longer", "identity", s.options.Identity, "term", term.Revision())
	resigning, end := context.WithTimeout(context.WithoutCancel(ctx), resignWithin)
	defer end()
	if failed := term.Resign(resigning); failed != nil {
		s.options.Log.Error("the term could not be resigned; it ends with its lease", "err", failed)
	}
	return err
}

func (s *Server) become(next phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = next
	s.notify()
}

// notify wakes what waits for a change; s.mu is held.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// drain waits for the end of the requests that this server executes.
func (s *Server) drain() {
	for {
		s.mu.Lock()
		left, changed := s.requests, s.changed
		s.mu.Unlock()
		if left == 0 {
			return
		}
		<-changed
	}
}

// Leads reports whether this server executes requests.
func (s *Server) Leads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == leading
}

// Enter implements [apiserver.Leadership].
func (s *Server) Enter(ctx context.Context) (leave func(), err error) {
	if ctx.Value(takeOverKey{}) != nil {
		return func() {}, nil
	}
	for {
		leave, wait := s.enter()
		switch {
		case leave != nil:
			return leave, nil
		case wait == nil:
			if answer, ok := ctx.Value(forwardedKey{}).(http.Header); ok {
				answer.Set(refusedHeader, "true")
				return nil, storage.ErrNotLeader
			}
			return nil, nil // another server executes it
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enter is Enter without waiting: while the server takes over it returns what ends that.
func (s *Server) enter() (leave func(), wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.phase {
	case leading:
		s.requests++
		return s.leave, nil
	case takingOver:
		return nil, s.changed
	}
	return nil, nil
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests--; s.requests == 0 {
		s.notify()
	}
}
