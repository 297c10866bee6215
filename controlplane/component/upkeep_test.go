// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/controlplane/component"
)

// runUpkeep runs it until the test ends, and fails unless it has ended then.
func runUpkeep(t *testing.T, u *component.Upkeep) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		u.Run(ctx)
	}()
	return func() {
		cancel()
		<-ran
	}
}

func TestUpkeepRepeatsWhatFailsWithBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		u := component.NewUpkeep(slog.New(slog.NewTextHandler(&log, nil)))
		start := time.Now()
		var at []time.Duration
		refused := errors.New("refused by a webhook")
		u.Try(t.Context(), "write a lease", func(context.Context) error {
			if at = append(at, time.Since(start)); len(at) < 9 {
				return refused
			}
			return nil
		})
		stop := runUpkeep(t, u)
		time.Sleep(time.Hour)
		stop()
		var want []time.Duration
		for _, seconds := range []int{0, 1, 3, 7, 15, 31, 63, 123, 183} {
			want = append(want, time.Duration(seconds)*time.Second)
		}
		if !slices.Equal(at, want) {
			t.Errorf("it was tried at %v, want %v", at, want)
		}
		if n := strings.Count(log.String(), `what="write a lease"`); n != 8 || !strings.Contains(log.String(), refused.Error()) {
			t.Errorf("logged %d times: %s", n, log.String())
		}
	})
}

// What waits, or does not answer, keeps no other task waiting for longer than its own time.
func TestUpkeepBoundsEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := component.NewUpkeep(nil)
		start := time.Now()
		hanging := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		u.Try(t.Context(), "hangs", hanging)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("something waited %v for an attempt", took)
		}
		stop := runUpkeep(t, u)
		time.Sleep(2 * time.Second) // it hangs again
		done := time.Time{}
		u.Due("works", func(context.Context) error {
			done = time.Now()
			return nil
		})
		time.Sleep(time.Minute)
		stop()
		if done.IsZero() || done.Sub(start) > 47*time.Second {
			t.Errorf("the other task was done %v after the start", done.Sub(start))
		}
	})
}

func TestUpkeepDoesTasksOfOneNameOnce(t *testing.T) {
	t.Parallel()
	u := component.NewUpkeep(nil)
	var ran []string
	task := func(as string, err error) func(context.Context) error {
		return func(context.Context) error {
			ran = append(ran, as)
			return err
		}
	}
	broken := errors.New("broken")
	u.Due("a", task("a1", nil))
	u.Due("b", task("b1", broken))
	u.Due("a", task("a2", broken))
	u.Repeat(t.Context())
	u.Try(t.Context(), "a", task("a3", nil)) // nothing is left to do of it
	u.Repeat(t.Context())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	u.Repeat(ended)
	if got, want := fmt.Sprint(ran), "[b1 a2 a3 b1]"; got != want {
		t.Errorf("what ran is %s, want %s", got, want)
	}
}
