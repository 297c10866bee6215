// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// arrival is a request before it has a slot: it is authenticated, waits for the store once,
// and is authorized. How many requests of a user and of a connection do so is bounded, and
// none of them holds what others need.
type arrival struct {
	server *Server
	req    *endpoint.Request
	// user that was authenticated, not yet the one that is impersonated.
	user *auth.User
	// leave gives back the place of a request that is bounded; nil before.
	leave func()
	// fresh reports that the store was waited for; failed is why it could not be.
	fresh  bool
	failed error
	// token of the user, if it rests on stored objects.
	token string
}

// maxLag is how old the state may be that answers a read with resourceVersion=0.
const maxLag = 5 * time.Second

// authenticate returns the user of a request. Credentials that rest on the store have it wait.
func (a *arrival) authenticate(ctx context.Context, r *http.Request) (*auth.User, error) {
	if user := auth.UserFrom(ctx); user != nil {
		return user, nil
	}
	user, err := a.server.options.Authenticator.Authenticate(r.WithContext(auth.WithArrival(ctx, a)))
	switch {
	case a.failed != nil:
		return nil, a.failed
	case err != nil || user == nil:
		return nil, apierrors.NewUnauthorized("Unauthorized")
	case !user.In(auth.Authenticated) && !user.In(auth.Unauthenticated):
		known := *user
		known.Groups = append(append([]string{}, user.Groups...), auth.Authenticated)
		user = &known
	}
	return user, nil
}

// Freshen implements [auth.Arrival].
func (a *arrival) Freshen(ctx context.Context, user *auth.User, token string) error {
	a.token = token
	return a.await(ctx, user, 0)
}

// Warn implements [auth.Arrival].
func (a *arrival) Warn(text string) { a.req.Warn(text) }

// await waits for what other servers of the same data have acknowledged, unless the request
// has waited for that already: from then on, the store is read as this process has it.
func (a *arrival) await(ctx context.Context, user *auth.User, lag time.Duration) error {
	if a.fresh || a.failed != nil {
		return a.failed
	}
	if a.failed = a.enter(user); a.failed != nil {
		return a.failed
	}
	err := a.server.store.Sync(ctx, lag)
	switch {
	case err == nil:
		a.fresh = true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.failed = fmt.Errorf("wait for the store: %w", context.DeadlineExceeded)
	default:
		a.failed = apierrors.NewServiceUnavailable(fmt.Sprintf("the store cannot be read: %v", err))
	}
	return a.failed
}

// enter counts the request as one that has no slot yet.
func (a *arrival) enter(user *auth.User) (err error) {
	if a.leave == nil {
		a.leave, err = a.server.inFlight.Wait(digest(a.req, user))
	}
	return err
}

// end is called when the request has a slot, or is refused.
func (a *arrival) end() {
	if a.leave != nil {
		a.leave()
		a.leave = func() {}
	}
}

// isProbe reports whether a request is a health check. It waits for nothing that it could
// report about, and for no other request.
func isProbe(req *endpoint.Request) bool {
	if req.Info.Resource || req.Verb != "get" && req.Verb != "head" {
		return false
	}
	for _, kind := range healthKinds() {
		if path, ok := strings.CutPrefix(req.Path, "/"+kind); ok && (path == "" || path[0] == '/') {
			return true
		}
	}
	return false
}

// reservedKey marks the requests of [Server.Reserved]; passedOnKey those of [PassedOn].
type (
	reservedKey struct{}
	passedOnKey struct{}
)

// PassedOn marks a request that another server of the store has passed on: its connection is
// that of the other server, which bounds the connections of clients.
func PassedOn(ctx context.Context) context.Context {
	return context.WithValue(ctx, passedOnKey{}, true)
}

// digest returns the properties of a request of a user that decide whether it is admitted.
func digest(r *endpoint.Request, user *auth.User) exchange.RequestDigest {
	ctx := r.HTTP.Context()
	p := exchange.RequestDigest{
		User: user.Name, Read: r.Verb == "get" || r.Verb == "list" || r.Verb == "head",
		Long: r.LongRunning(), Watch: r.Verb == "watch",
	}
	reserved, _ := ctx.Value(reservedKey{}).(bool)
	switch {
	case reserved:
		p.Lane = exchange.Reserved
	case isProbe(r):
		p.Lane = exchange.Probe
	case user.In(auth.Masters):
		p.Lane = exchange.Exempt
	}
	if passed, _ := ctx.Value(passedOnKey{}).(bool); !passed {
		p.Connection = exchange.ConnectionFrom(ctx)
	}
	return p
}
