// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/steer-dev/steer/apiserver/auth"
)

var errSoon = errors.New("apiserver: not implemented yet")

type warnings struct{}

func (*warnings) add(string) {}

// Server serves resources.
type Server struct {
	options Options
}

// New returns a server without resources.
func New(options Options) (*Server, error) { return &Server{options: options}, nil }

// Install adds a resource, or replaces the one of the same group and plural
// name, whose watches then end. It is visible to the next request.
func (s *Server) Install(r *Resource) error { return errSoon }

// Remove takes a resource away and ends its watches.
func (s *Server) Remove(group, plural string) {}

// Handle mounts a handler at a path outside the resource API, or below it when
// the path ends in a slash. It runs behind the whole chain.
func (s *Server) Handle(path string, h http.Handler) {}

// Handler returns the HTTP side of the server.
func (s *Server) Handler() http.Handler { return http.NotFoundHandler() }

// RoundTripper returns an in-process transport whose requests run as user.
func (s *Server) RoundTripper(user *auth.User) http.RoundTripper { return nil }

// Stop ends all watches, refuses new requests and waits for those in flight.
func (s *Server) Stop(ctx context.Context) error { return nil }
