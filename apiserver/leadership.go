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
	// Token that authenticated the user, if it rests on stored objects: the server that
	// executes the request authenticates it again, by the state that it has. Else empty.
	Token string
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
	if !r.Info.Resource || r.Elsewhere || r.LongRunning() {
		return false
	}
	return r.Served == nil || r.Served.Backend == nil || r.Sub != nil
}

// led has the server that leads execute a request that changes something. It returns a
// function that is called at the end of the request if this is that server, and otherwise
// nil, when the request has been answered. The request has a slot while it waits or is
// passed on, and its body is read before.
func (s *Server) led(ctx context.Context, w *exchange.Writer, r *http.Request, req *endpoint.Request, arrived *arrival) (leave func(), err error) {
	forwarded := Forwarded{Request: r, User: arrived.user, Token: arrived.token, AuditID: w.Header().Get("Audit-Id")}
	for {
		if leave, err = s.leadership.Enter(ctx); err != nil {
			return nil, err
		}
		if leave != nil {
			// While it waited, this server may have become the one that leads.
			if err := s.catchUp(ctx, req); err != nil {
				leave()
				return nil, err
			}
			return leave, nil
		}
		if forwarded.Body == nil {
			if forwarded.Body, err = body.Read(r, s.limits.BodyBytes); err != nil {
				return nil, err
			}
			req.HTTP.Body = io.NopCloser(bytes.NewReader(forwarded.Body)) // for this server, if it is to lead
		}
		if answered, err := s.forward(ctx, w, forwarded); answered || err != nil {
			return nil, err
		}
	}
}

// forward passes a request on. The server that executes it answers first when its time is up.
func (s *Server) forward(ctx context.Context, w *exchange.Writer, forwarded Forwarded) (answered bool, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		limited := exchange.Within(forwarded.Request.Context(), time.Until(deadline)+exchange.WriteGrace/2)
		defer limited.Stop()
		ctx = limited
	}
	forwarded.Request = forwarded.Request.WithContext(ctx)
	return s.leadership.Forward(w, forwarded)
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
