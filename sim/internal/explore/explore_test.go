// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/sim/internal/bugs"
	"github.com/steer-dev/steer/sim/internal/explore"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/worker"
	"github.com/steer-dev/steer/steertest"
)

// explored explores f; in a worker process it runs f instead.
func explored(t *testing.T, f func(t *testing.T), o explore.Options) (explore.Result, error) {
	t.Helper()
	if worker.Serves(t) {
		worker.Serve(t, f)
	}
	o.Test, o.Failures, o.Shrinking = t.Name(), 5, 20
	if raceDetector {
		o.Orders, o.Plans, o.Failures, o.Shrinking = min(o.Orders, 2), 8, 1, 5
	}
	if o.Stuck == 0 {
		o.Stuck = time.Minute
	}
	began := time.Now()
	r, err := explore.Run(t.Context(), o)
	t.Logf("%d runs in %s", r.Runs, time.Since(began))
	return r, err
}

// operated is a test of an operator that does the same after each start.
func operated(do bugs.Do) func(t *testing.T) { return bugs.Operated(func() bugs.Do { return do }) }

func TestRunFindsTheSecondOfAPairAndShrinksIt(t *testing.T) {
	t.Parallel()
	r, err := explored(t, operated(bugs.Pair(false)), explore.Options{Orders: 5})
	if err != nil || len(r.Failures) != 1 {
		t.Fatalf("%v, %d failures", err, len(r.Failures))
	}
	f := r.Failures[0]
	page := f.String()
	t.Log("\n" + page)
	if f.Plan.Name() != "crash_after_create_Secret_db" || !strings.Contains(page, "Secret default/db-ssl is missing: the reference has it") {
		t.Errorf("plan %s:\n%s", f.Plan.Name(), page)
	}
	if !raceDetector && (r.Repeats == 0 || r.Left != 0) {
		t.Errorf("%d alike, %d left out", r.Repeats, r.Left)
	}
}

func TestRunFindsNothingWhereEachHasItsGuard(t *testing.T) {
	t.Parallel()
	r, err := explored(t, operated(bugs.Pair(true)), explore.Options{Orders: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("\n%s", f)
	}
}

// interrupter ends the time when a plan begins.
type interrupter struct {
	at    string
	end   context.CancelCauseFunc
	plans atomic.Int64
}

func (i *interrupter) Plans(n int)     { i.plans.Store(int64(n)) }
func (i *interrupter) Over(plan.Plan)  {}
func (i *interrupter) Found(plan.Plan) {}
func (i *interrupter) Begins(p plan.Plan) {
	if p.Name() == i.at {
		i.end(errTime)
	}
}

var errTime = errors.New("the time is over")

// TestRunNamesThePlanThatIsCutOff has explorations side by side with one place: their
// processes are never two at once.
func TestRunNamesThePlanThatIsCutOff(t *testing.T) {
	t.Parallel()
	places := &explore.Places{Most: 1}
	for _, at := range []string{"crash_after_create_Secret_db", "500_on_create_Secret_db"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			if f := operated(bugs.Pair(true)); worker.Serves(t) {
				worker.Serve(t, f)
			}
			ctx, end := context.WithCancelCause(t.Context())
			follower := &interrupter{at: at, end: end}
			r, err := explore.Run(ctx, explore.Options{Test: t.Name(), Stuck: time.Minute, Notes: follower, Places: places})
			if err != nil || len(r.Cut) != 1 || r.Cut[0].Name() != at || !errors.Is(r.Ended, errTime) {
				t.Errorf("%v, cut off: %v, ended by %v", err, r.Cut, r.Ended)
			}
			if r.Ran+r.Left != int(follower.plans.Load()) || r.Left == 0 {
				t.Errorf("%d of %d plans ran, %d are left", r.Ran, follower.plans.Load(), r.Left)
			}
		})
	}
}

// TestRunRefusesATestThatProvesNothing names the reason.
func TestRunRefusesATestThatProvesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		f    func(t *testing.T)
		want string
	}{
		"no env":      {func(*testing.T) {}, "makes no environment"},
		"no operator": {func(t *testing.T) { steertest.New(t, steertest.Options{}) }, "has no operator"},
		"no write":    {operated(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }), "writes nothing"},
		"fails":       {func(t *testing.T) { t.Error("not today") }, "not today"},
		"panics":      {func(*testing.T) { panic("ouch") }, "ouch"},
		"never ends":  {func(t *testing.T) { go func() { select {} }(); steertest.New(t, steertest.Options{}) }, "goroutines are left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := explored(t, test.f, explore.Options{})
			var unusable *explore.UnusableError
			if !errors.As(err, &unusable) || !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}
