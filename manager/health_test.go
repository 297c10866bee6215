// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestChecksAnswerLikeAKubernetesComponent(t *testing.T) {
	t.Parallel()
	c := newChecks("/readyz")
	well := func(*http.Request) error { return nil }
	ill := func(*http.Request) error { return errors.New("the cache is not synced") }
	for name, check := range map[string]Check{"ping": well} {
		if err := c.add(name, check); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.add("ping", well); err == nil {
		t.Error("a name was taken twice")
	}
	if err := c.add("a/b", well); err == nil {
		t.Error("a name with a slash was accepted")
	}
	get := func(url string) (int, string) {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		return w.Code, w.Body.String()
	}
	expect := func(url string, code int, body string) {
		t.Helper()
		if gotCode, gotBody := get(url); gotCode != code || gotBody != body {
			t.Errorf("%s: got %d %q, want %d %q", url, gotCode, gotBody, code, body)
		}
	}
	expect("/readyz", 200, "ok")
	expect("/readyz/ping", 200, "ok")
	expect("/readyz/pong", 404, "404 page not found\n")
	expect("/readyz?verbose", 200, "[+]ping ok\nreadyz check passed\n")

	if err := c.add("cache", ill); err != nil {
		t.Fatal(err)
	}
	expect("/readyz", 500, "[+]ping ok\n[-]cache failed: the cache is not synced\nreadyz check failed\n")
	expect("/readyz?exclude=cache", 200, "ok")
	expect("/readyz?verbose&exclude=cache&exclude=none", 200, "[+]ping ok\n[+]cache excluded: ok\nwarn: no check is named \"none\"\nreadyz check passed\n")
	expect("/readyz/cache", 500, "[-]cache failed: the cache is not synced\nreadyz check failed\n")
}
