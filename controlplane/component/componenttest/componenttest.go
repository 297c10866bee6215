// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package componenttest tests parts of a control plane without the others: a server has the
// parts of one package and nothing else, and answers requests as it does in a control
// plane. [Conversations] sends it those that kube-apiserver was recorded with.
//
//	componenttest.Conversations{
//		Names: []string{"kinds-flow"},
//		Parts: func(component.Deps) component.List { return component.List{{Name: "kinds", Resources: flow.Resources()}} },
//	}.Run(t)
package componenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Server is an API server with some parts, over a store in memory. It is for one
// goroutine at a time.
type Server struct {
	component.Deps

	list   component.List
	runner *step.Runner
}

// New returns a server with parts, which is stopped at the end of the test. The Authorizer
// allows the group system:masters everything, and others nothing; to change that, declare
// changes the Deps before it makes parts of them.
func New(tb testing.TB, declare func(*component.Deps) component.List) *Server {
	tb.Helper()
	s := &Server{Deps: component.Deps{
		Store: storage.NewMemory(storage.MemoryOptions{}), Authorizer: auth.AllowMasters{}, Entropy: apiserver.SeededEntropy(1),
		Log: slog.New(slog.DiscardHandler), Upkeep: component.NewUpkeep(nil),
	}}
	ready := func() error { return nil }
	s.Progress = component.Progress{Booted: ready, Announced: ready, Running: ready}
	var err error
	if s.Server, err = apiserver.New(apiserver.Options{Store: s.Store, Authorizer: authorizer{&s.Deps}}); err != nil {
		tb.Fatal(err)
	}
	s.Catalog, s.Send = component.NewCatalog(s.Server), s.send
	s.list = declare(&s.Deps)
	s.Server.Bind(apiserver.Bindings{Authenticator: auth.AsAnonymous{}, Admission: s.list.Admission(nil), Checks: s.list.Health()})
	if err := s.list.Install(s.Server); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Server.Stop(context.Background()); err != nil {
			tb.Error(err)
		}
		s.list.Close()
	})
	s.boot(tb)
	s.runner = step.NewRunner(s.Store, s.Send, s.Log, s.list.Controllers()...)
	return s
}

// authorizer is that of the Deps at the time of a request.
type authorizer struct{ deps *component.Deps }

func (a authorizer) Authorize(ctx context.Context, r *auth.Attributes) (auth.Decision, string, error) {
	return a.deps.Authorizer.Authorize(ctx, r)
}

// boot stores the first objects.
func (s *Server) boot(tb testing.TB) {
	tb.Helper()
	ctx := tb.Context()
	view := s.Store.Latest()
	writes, requests, err := s.list.Boot(view, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	for _, w := range writes {
		if _, err := s.Store.Commit(ctx, w); err != nil {
			tb.Fatal(err)
		}
	}
	for _, r := range requests {
		if err := s.Send(ctx, r); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.list.Load(ctx); err != nil {
		tb.Fatal(err)
	}
}

// Client returns a client of a user. Before each of its requests the controllers of the
// parts do all that is left to do.
func (s *Server) Client(user *auth.User) *http.Client {
	return &http.Client{Transport: settled{s, user}}
}

// Admin returns a user who may do everything.
func Admin() *auth.User {
	return &auth.User{Name: "admin", UID: "admin", Groups: []string{auth.Masters, auth.Authenticated}}
}

// settled sends requests of a user once the controllers are done.
type settled struct {
	server *Server
	user   *auth.User
}

// RoundTrip implements [http.RoundTripper].
func (t settled) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := t.server.runner.Settle(r.Context()); err != nil {
		return nil, err
	}
	return t.server.Server.RoundTripper(t.user).RoundTrip(r)
}

// errRefused reports that the server refused a request of a part.
var errRefused = errors.New("the server refused it")

// send carries out a request of a part.
func (s *Server) send(ctx context.Context, r step.Request) error {
	request, err := http.NewRequestWithContext(ctx, r.Method, "https://in-process.invalid"+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return err
	}
	request.URL.RawQuery = r.Query.Encode()
	request.Header.Set("User-Agent", "kube-controller-manager")
	if strings.HasSuffix(r.User, ":apiserver") {
		request.Header.Set("User-Agent", "kube-apiserver")
	}
	if r.Body != nil {
		request.Header.Set("Content-Type", r.ContentType)
	}
	response, err := s.Server.RoundTripper(&auth.User{Name: r.User, Groups: []string{auth.Authenticated, auth.Masters}}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 300 || response.StatusCode == http.StatusNotFound && r.Method == http.MethodDelete {
		return nil
	}
	answer, err := io.ReadAll(response.Body)
	return errors.Join(fmt.Errorf("%s %s: %w: %s", r.Method, r.Path, errRefused, answer), err)
}
