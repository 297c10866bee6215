// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import "context"

// Freshen returns once the store shows all that was acknowledged before the request came.
// The user is whom the token is of, if what it rests on is still there. An error is the
// answer to the request; it is not about its credentials.
type Freshen func(ctx context.Context, user *User, token string) error

type freshenKey struct{}

// WithFreshen attaches what authenticators of tokens call that rest on stored objects, as those
// of ServiceAccounts do: first they verify what needs no store, a signature for example,
// so that forged ones cost no read; then they call [Freshen]; and then they look at
// the objects.
func WithFreshen(ctx context.Context, f Freshen) context.Context {
	return context.WithValue(ctx, freshenKey{}, f)
}

// FreshenFrom returns what [WithFreshen] attached, or nil: then the authenticator waits for
// the store by itself.
func FreshenFrom(ctx context.Context) Freshen {
	f, _ := ctx.Value(freshenKey{}).(Freshen)
	return f
}

type warnKey struct{}

// WithWarn attaches what [Warn] calls: the answer to the request has the text as a warning.
func WithWarn(ctx context.Context, warn func(text string)) context.Context {
	return context.WithValue(ctx, warnKey{}, warn)
}

// Warn is for authenticators: it tells a client of credentials that it should not use any more. It
// does nothing without [WithWarn].
func Warn(ctx context.Context, text string) {
	if warn, ok := ctx.Value(warnKey{}).(func(string)); ok {
		warn(text)
	}
}
