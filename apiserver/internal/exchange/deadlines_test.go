// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// timed is an answer whose connection has deadlines. It notes them as times from now.
type timed struct {
	*httptest.ResponseRecorder
	mu    sync.Mutex
	noted []string
}

func (w *timed) note(what string, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	when := "none"
	switch {
	case at.Equal(time.Unix(1, 0)):
		when = "cut"
	case !at.IsZero():
		when = time.Until(at).String()
	}
	w.noted = append(w.noted, what+" "+when)
	return nil
}

func (w *timed) SetReadDeadline(at time.Time) error  { return w.note("read", at) }
func (w *timed) SetWriteDeadline(at time.Time) error { return w.note("write", at) }

func (w *timed) expect(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.noted, want) {
		t.Errorf("deadlines %q, want %q", w.noted, want)
	}
	w.noted = nil
}

func TestDeadlinesBoundARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			body   string
			server *http.Server
			want   []string
		}{
			{"", nil, []string{"write 11s"}},
			{"body", nil, []string{"read 10.5s", "write 11s"}},
			{"body", &http.Server{WriteTimeout: 11 * time.Second, ReadHeaderTimeout: time.Second}, []string{"read 10.5s"}},
			{"", &http.Server{WriteTimeout: 12 * time.Second, ReadHeaderTimeout: time.Second}, []string{"write 11s"}},
		} {
			w := &timed{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
			if c.server != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, c.server))
			}
			exchange.NewDeadlines(w).Bound(r, 10*time.Second)
			w.expect(t, c.want...)
		}
	})
}

func TestDeadlinesOfALongAnswerBoundEachWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		d := exchange.NewDeadlines(w)
		d.Writing() // it is bound as a whole
		d.Written()
		d.Lift()
		w.expect(t, "read none", "write none")
		for range 2 {
			d.Writing()
			time.Sleep(exchange.WriteTimeout - time.Second)
			d.Written()
			time.Sleep(time.Hour)
			synctest.Wait()
			w.expect(t)
		}
		d.Writing()
		time.Sleep(exchange.WriteTimeout + time.Second)
		synctest.Wait()
		w.expect(t, "write cut")
		d.Done()
		w.expect(t, "write 30s")
	})
}

func TestDeadlinesLeaveAConnectionAloneThatHasNone(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	for _, d := range []*exchange.Deadlines{nil, exchange.NewDeadlines(httptest.NewRecorder())} {
		d.Bound(r, time.Second)
		d.Lift()
		d.Writing()
		d.Written()
		d.Done()
	}
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	exchange.NewDeadlines(w).Done() // of a request that was answered in time
	w.expect(t)
}
