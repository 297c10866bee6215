// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
)

// reviewer answers reviews like an API server that knows two tokens, of which
// one may get /metrics.
func reviewer(asked *atomic.Int32) client.Client {
	return interceptor.New(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.Client, obj client.Object, _ ...client.WriteOption) error {
			asked.Add(1)
			switch r := obj.(type) {
			case *tokenReview:
				if r.Spec.Token == "unreachable" {
					return errors.New("connection refused")
				}
				r.Status.Authenticated = r.Spec.Token == "scraper" || r.Spec.Token == "visitor"
				r.Status.User = reviewed{Username: r.Spec.Token, Groups: []string{"g"}}
			case *accessReview:
				a := r.Spec.NonResourceAttributes
				r.Status.Allowed = r.Spec.User == "scraper" && a.Path == "/metrics" && a.Verb == "get" && len(r.Spec.Groups) == 1
			}
			return nil
		},
	})
}

func TestOnlyWhoTheServerAllowsMayScrape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var log bytes.Buffer
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data") })
		g := New(reviewer(&asked), page, slog.New(slog.NewTextHandler(&log, nil)))
		get := func(path, authorization string) (int, string) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		for _, c := range []struct {
			path, authorization string
			code                int
			body                string
		}{
			{"/metrics", "", 401, "a bearer token is needed"},
			{"/metrics", "Basic eDp5", 401, "a bearer token is needed"},
			{"/metrics", "Bearer wrong", 401, "not accepted"},
			{"/metrics", "Bearer visitor", 403, "grant a ClusterRole with nonResourceURLs: [/metrics]"},
			{"/other", "Bearer scraper", 403, "grant"},
			{"/metrics", "bearer scraper", 200, "data"},
			{"/metrics", "Bearer unreachable", 500, "could not be asked"},
		} {
			if code, body := get(c.path, c.authorization); code != c.code || !strings.Contains(body, c.body) {
				t.Errorf("%s with %q: %d %q, want %d %q", c.path, c.authorization, code, body, c.code, c.body)
			}
		}
		if !strings.Contains(log.String(), "needs create on tokenreviews") {
			t.Errorf("the log gives no advice: %s", &log)
		}
		before := asked.Load()
		get("/metrics", "Bearer scraper")
		if asked.Load() != before {
			t.Error("an answer is not remembered")
		}
		time.Sleep(rememberAllowed)
		get("/metrics", "Bearer scraper")
		if asked.Load() == before {
			t.Error("an answer is remembered for ever")
		}
	})
}

// TestInventedTokensTakeNoPlaceOfGoodOnes asks with more tokens than answers are remembered.
func TestInventedTokensTakeNoPlaceOfGoodOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data") })
		g := New(reviewer(&asked), page, slog.New(slog.DiscardHandler))
		get := func(token string) int {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w.Code
		}
		if code := get("scraper"); code != http.StatusOK {
			t.Fatal(code)
		}
		for i := range 2 * maxRemembered {
			if code := get(fmt.Sprint("invented-", i)); code != http.StatusUnauthorized {
				t.Fatal(code)
			}
		}
		before := asked.Load()
		if code := get("scraper"); code != http.StatusOK || asked.Load() != before {
			t.Errorf("%d; asked %d times more, want none", code, asked.Load()-before)
		}
	})
}
