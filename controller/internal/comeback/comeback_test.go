// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package comeback_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/controller/internal/comeback"
)

func TestRequestsAreIdleUnlessOneComesBackSoon(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the test is over")
	cancel(cause)
	for what, tt := range map[string]struct {
		after   time.Duration
		returns bool
		idle    bool
	}{
		"soon": {comeback.Limit - 1, true, false}, "at once": {0, true, false}, "late": {comeback.Limit, true, true}, "never": {0, false, true},
	} {
		var r comeback.Requests[string]
		r.Begin("a")
		r.End("a", tt.after, tt.returns)
		idle, err := r.Idle(ended)
		if idle != tt.idle || !tt.idle && !errors.Is(err, cause) || tt.idle && err != nil {
			t.Errorf("%s: idle is %v, %v", what, idle, err)
		}
	}
}

func TestRequestsIdleReturnsWhenTheLastBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r comeback.Requests[string]
		r.End("a", 0, true)
		r.End("b", 0, true)
		var returned atomic.Int32
		for range 2 {
			go func() {
				if idle, err := r.Idle(t.Context()); idle || err != nil {
					t.Errorf("idle is %v, %v", idle, err)
				}
				returned.Add(1)
			}()
			synctest.Wait()
		}
		for i, tt := range []struct {
			begins string
			want   int32
		}{{"other", 0}, {"a", 0}, {"b", 2}} {
			r.Begin(tt.begins)
			synctest.Wait()
			if got := returned.Load(); got != tt.want {
				t.Errorf("%d: %d have returned, want %d", i, got, tt.want)
			}
		}
		if idle, err := r.Idle(t.Context()); !idle || err != nil {
			t.Errorf("while attempts run idle is %v, %v", idle, err)
		}
	})
}

func TestRequestsExplainWhichComesBackMostOften(t *testing.T) {
	t.Parallel()
	failed := errors.New("deadline")
	var r comeback.Requests[string]
	if err := r.Explain(failed); err != failed { //nolint:errorlint // as it is
		t.Errorf("without requests: %v", err)
	}
	attempt := func(key string, after time.Duration, returns bool) {
		r.Begin(key)
		r.End(key, after, returns)
	}
	for range 3 {
		attempt("often", 20*time.Millisecond, true)
	}
	attempt("once", 0, true)
	for range 9 {
		attempt("ended", 0, true)
	}
	attempt("ended", 0, false)
	const want = `deadline: often has asked 3 times in a row to come back, at last after 20ms: return Wait and let an event tell, or a delay of 1s and more`
	for _, when := range []string{"waits", "runs"} {
		if err := r.Explain(failed); !errors.Is(err, failed) || err.Error() != want {
			t.Errorf("while it %s: %v", when, err)
		}
		r.Begin("often")
	}
	r.End("often", time.Minute, true)
	attempt("often", 0, true) // counts anew
	attempt("once", 0, true)
	if err := r.Explain(failed); err == nil || err.Error() != `deadline: once has asked 2 times in a row to come back, at last after 0s: return Wait and let an event tell, or a delay of 1s and more` {
		t.Errorf("after a rest: %v", err)
	}
}
