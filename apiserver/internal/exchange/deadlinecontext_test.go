// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestBoundedContextBehavesLikeOneWithADeadline compares the two for every order of endings and
// calls.
func TestBoundedContextBehavesLikeOneWithADeadline(t *testing.T) {
	t.Parallel()
	type key struct{}
	mine := errors.New("the parent's reason")
	for name, end := range map[string]func(cancel context.CancelCauseFunc, stop func()){
		"nothing":         func(context.CancelCauseFunc, func()) {},
		"its stop":        func(_ context.CancelCauseFunc, stop func()) { stop() },
		"its parent":      func(cancel context.CancelCauseFunc, _ func()) { cancel(mine) },
		"its deadline":    func(context.CancelCauseFunc, func()) { time.Sleep(time.Minute) },
		"stop, then time": func(_ context.CancelCauseFunc, stop func()) { stop(); time.Sleep(time.Minute) },
	} {
		for asked, ask := range map[string]func(context.Context) context.Context{
			"nothing":   func(ctx context.Context) context.Context { return ctx },
			"its error": func(ctx context.Context) context.Context { _ = ctx.Err(); return ctx },
			"its end":   func(ctx context.Context) context.Context { _ = ctx.Done(); return ctx },
			"a child": func(ctx context.Context) context.Context {
				child, cancel := context.WithCancel(ctx)
				context.AfterFunc(ctx, cancel)
				return child
			},
			"a child with a deadline": func(ctx context.Context) context.Context {
				child, cancel := context.WithTimeout(ctx, time.Hour)
				context.AfterFunc(ctx, cancel)
				return child
			},
		} {
			for _, limit := range []time.Duration{time.Second, time.Hour, 3 * time.Hour} {
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
					defer cancel(nil)
					parent, cancelLast := context.WithTimeout(parent, 2*time.Hour)
					defer cancelLast()
					ours := Within(parent, limit)
					theirs, stop := context.WithTimeout(parent, limit)
					got, want := ask(ours), ask(theirs)
					end(cancel, func() { ours.Stop(); stop() })
					synctest.Wait()
					told := func(ctx context.Context) bool {
						select {
						case <-ctx.Done():
							return true
						default:
							return false
						}
					}
					gotAt, _ := got.Deadline()
					wantAt, _ := want.Deadline()
					switch {
					case !errors.Is(got.Err(), want.Err()):
						t.Errorf("ended by %s after %s, limit %v: error %v, want %v", name, asked, limit, got.Err(), want.Err())
					case !errors.Is(context.Cause(got), context.Cause(want)):
						t.Errorf("ended by %s after %s, limit %v: cause %v, want %v", name, asked, limit, context.Cause(got), context.Cause(want))
					case told(got) != told(want) || !gotAt.Equal(wantAt) || got.Value(key{}) != "value":
						t.Errorf("ended by %s after %s, limit %v: told %t, want %t; until %v, want %v", name, asked, limit, told(got), told(want), gotAt, wantAt)
					}
					ours.Stop()
					stop()
				})
			}
		}
	}
}
