// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import "context"

// Arrival is a request that is being authenticated.
type Arrival interface {
	// Freshen returns once the store shows all that was acknowledged before the request came.
	// The user is whom the token is of, if what it rests on is still there. An error is the
	// answer to the request; it is not about its credentials.
	Freshen(ctx context.Context, user *User, token string) error
	// Warn tells a client of credentials that it should not use any more: the answer has the
	// text as a warning.
	Warn(text string)
}

type arrivalKey struct{}

// WithArrival attaches the request, for authenticators of tokens that rest on stored objects,
// as those of ServiceAccounts do: first they verify what needs no store, a signature for
// example, so that forged ones cost no read; then they call Freshen; and then they look at the
// objects.
func WithArrival(ctx context.Context, a Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}

// ArrivalFrom returns what [WithArrival] attached, or nil: then the authenticator waits for
// the store by itself.
func ArrivalFrom(ctx context.Context) Arrival {
	a, _ := ctx.Value(arrivalKey{}).(Arrival)
	return a
}
