// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// heldWire answers a write when it is let go, or fails when its context ends.
type heldWire struct {
	arrived, release chan struct{}
}

func (w heldWire) RoundTrip(r *http.Request) (*http.Response, error) {
	close(w.arrived)
	select {
	case <-w.release:
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func patch(ctx context.Context, t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://server/x", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A server may execute what its client does not wait for any more.
func TestWritesThatWereCancelledAreUnderWayUntilTheirAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(10 * time.Second)
		wire := heldWire{make(chan struct{}), make(chan struct{})}
		c, f := fenced(&http.Client{Transport: wire}, func() (time.Time, bool) { return until, time.Now().Before(until) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			resp, err := c.Do(patch(ctx, t))
			if err == nil {
				_ = resp.Body.Close()
			}
			done <- err
		}()
		<-wire.arrived
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller: got error %v", err)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := f.drain(soon); err == nil {
			t.Error("nothing is under way before the answer")
		}
		close(wire.release)
		if err := f.drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWritesEndWithTheirTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var term atomic.Int64
		term.Store(int64(10 * time.Second))
		time.AfterFunc(5*time.Second, func() { term.Store(int64(20 * time.Second)) }) // it is renewed once
		wire := heldWire{make(chan struct{}), make(chan struct{})}
		c, f := fenced(&http.Client{Transport: wire}, func() (time.Time, bool) {
			until := began.Add(time.Duration(term.Load()))
			return until, time.Now().Before(until)
		})
		resp, err := c.Do(patch(t.Context(), t))
		if err == nil {
			_ = resp.Body.Close()
		}
		if lasted := time.Since(began); !errors.Is(err, ErrNotLeader) || lasted != 20*time.Second {
			t.Errorf("after %v: %v", lasted, err)
		}
		if err := f.drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
