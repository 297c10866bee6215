// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// Leadership makes one of several servers of a store execute all requests that change
// something: creations, updates, patches and deletions of stored objects. The others
// authenticate them and pass them on. Reads, watches, connections, reviews and requests
// for delegated versions are answered by the server that gets them.
type Leadership interface {
	// Enter returns a function if this server executes such requests; it is called when
	// the request has been answered. It returns nil if another server does, and waits
	// while this one takes over. An error is the answer to the request.
	Enter(ctx context.Context) (leave func(), err error)
	// Forward has the other server answer a request in the name of its user. It reports
	// false, having waited a moment, if the request was certainly not executed and
	// Enter is to be asked again.
	Forward(w http.ResponseWriter, r Forwarded) (answered bool, err error)
	// CatchUp returns once this server serves what the store says, as this process has
	// it. It is called for every request.
	CatchUp(ctx context.Context) error
}

// Forwarded is an authenticated request that another server executes.
type Forwarded struct {
	// Request as it was received; Body is what was read of it.
	Request *http.Request
	Body    []byte
	// User that was authenticated, not yet the one that is impersonated.
	User *auth.User
	// AuditID of the request.
	AuditID string
}

// executingKey marks what belongs to a request that this server executes: the requests that
// it sends to itself meanwhile are part of it.
type executingKey struct{}

func executing(ctx context.Context) bool { return ctx.Value(executingKey{}) != nil }

// changes reports whether the server that leads has to execute a request. What it does not
// know it leaves to that one as well.
func changes(r *endpoint.Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	if !r.Target.Resource || r.Elsewhere || r.LongRunning() {
		return false
	}
	return r.Served == nil || r.Served.Backend == nil || r.Sub != nil
}

// led has the server that leads execute a request that changes something. It returns a
// function that is called at the end of the request if this is that server, and otherwise
// nil, when the request has been answered. The body of a request that waits or is passed
// on counts as a request in flight.
func (s *Server) led(w *exchange.Writer, r *http.Request, req *endpoint.Request, limit time.Duration) (leave func(), err error) {
	exit, err := s.gate.Enter(passage(req))
	if err != nil {
		return nil, s.elsewhere(err)
	}
	defer exit()
	ctx := r.Context()
	if limit > 0 {
		limited := within(ctx, limit+exchange.WriteGrace/2) // the server that executes it answers first
		defer limited.stop()
		ctx = limited
	}
	forwarded := Forwarded{Request: r.WithContext(ctx), User: req.User, AuditID: w.Header().Get("Audit-Id")}
	for {
		if leave, err = s.leadership.Enter(ctx); err != nil || leave != nil {
			return leave, err
		}
		if forwarded.Body == nil {
			if forwarded.Body, err = body.Read(r, s.limits.BodyBytes); err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(forwarded.Body))
		}
		if answered, err := s.leadership.Forward(w, forwarded); answered || err != nil {
			return nil, err
		}
	}
}

// elsewhere has a request that was refused because the server stops repeated at once, if
// there are other servers.
func (s *Server) elsewhere(refused error) error {
	if s.leadership == nil || s.stopping.Err() == nil {
		return refused
	}
	out := apierrors.NewServiceUnavailable("the server is shutting down")
	out.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return out
}

// catchUp brings what is served in line with the store, and routes a request again if that
// may concern it.
func (s *Server) catchUp(ctx context.Context, req *endpoint.Request) error {
	before := s.table.Load()
	if err := s.leadership.CatchUp(ctx); err != nil {
		return err
	}
	if s.table.Load() == before {
		return nil
	}
	req.Served, req.Resource, req.Version, req.Sub = nil, nil, nil, nil
	s.find(req)
	return nil
}
