// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/manager"
)

func listen(t *testing.T) (local *dashboard.Local, at *url.URL) {
	t.Helper()
	local, err := dashboard.New(dashboard.Options{Source: dashboard.Recording(nil, "A recording")}).Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	if at, err = url.Parse(local.URL()); err != nil {
		t.Fatal(err)
	}
	return local, at
}

func TestLocalPageIsForWhoHasItsToken(t *testing.T) {
	t.Parallel()
	local, at := listen(t)
	ask := func(to string, change func(*http.Request)) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
		r.Host = at.Host
		if change != nil {
			change(r)
		}
		answer := httptest.NewRecorder()
		local.ServeHTTP(answer, r)
		return answer.Result()
	}
	token := at.Query().Get("token")
	in := ask("/queue?token="+token+"&x=1", nil)
	if in.StatusCode != http.StatusSeeOther || in.Header.Get("Location") != "/queue?x=1" || strings.Contains(in.Header.Get("Set-Cookie"), token) {
		t.Fatalf("the token gets %d %v", in.StatusCode, in.Header)
	}
	cookie := in.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || !strings.HasSuffix(cookie.Name, at.Port()) {
		t.Errorf("the cookie is %v", cookie)
	}
	has := func(r *http.Request) { r.AddCookie(cookie) }
	for name, c := range map[string]struct {
		to     string
		change func(*http.Request)
		want   int
	}{
		"the cookie":        {"/queue", has, http.StatusOK},
		"nothing":           {"/queue", nil, http.StatusUnauthorized},
		"a wrong token":     {"/?token=x", has, http.StatusUnauthorized},
		"a wrong cookie":    {"/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: token}) }, http.StatusUnauthorized},
		"localhost":         {"/", func(r *http.Request) { has(r); r.Host = "localhost:" + at.Port() }, http.StatusOK},
		"another host":      {"/", func(r *http.Request) { has(r); r.Host = "rebound.example.com:" + at.Port() }, http.StatusForbidden},
		"another host in":   {"/?token=" + token, func(r *http.Request) { r.Host = "localhost.example.com" }, http.StatusForbidden},
		"another origin":    {"/", func(r *http.Request) { has(r); r.Header.Set("Origin", "http://example.com") }, http.StatusForbidden},
		"another port":      {"/", func(r *http.Request) { has(r); r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"its own origin":    {"/", func(r *http.Request) { has(r); r.Header.Set("Origin", "http://"+at.Host) }, http.StatusOK},
		"another site":      {"/", func(r *http.Request) { has(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another site's":    {"/?token=" + token, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"the address bar":   {"/", func(r *http.Request) { has(r); r.Header.Set("Sec-Fetch-Site", "none") }, http.StatusOK},
		"the style, no one": {"/page.css", nil, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ask(c.to, c.change); got.StatusCode != c.want {
				t.Errorf("it gets %d, want %d", got.StatusCode, c.want)
			}
		})
	}
	if to := ask("//example.com/?token="+token, nil).Header.Get("Location"); !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
		t.Errorf("the token leads to %q", to)
	}
}

func TestListenRefusesWhatOthersReach(t *testing.T) {
	t.Parallel()
	page := dashboard.New(dashboard.Options{Source: dashboard.Recording(nil, "")})
	for _, address := range []string{":0", "0.0.0.0:0", "192.0.2.1:80", "example.com:80", "127.0.0.1"} {
		if local, err := page.Listen(address); err == nil {
			t.Errorf("%s is listened on", address)
			_ = local.Close()
		}
	}
}

// browser is a client with cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // self-signed, of this test
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

func body(t *testing.T, c *http.Client, at string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	c.CloseIdleConnections()
	return answer.StatusCode, string(text)
}

func TestLocalPageKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(t *testing.T) lifecycletest.Blocking {
		local, _ := listen(t)
		return lifecycletest.Blocking{Run: local.Run, ErrStarted: dashboard.ErrStarted}
	})
}

func TestStreamsEndWithThePage(t *testing.T) {
	t.Parallel()
	local, err := dashboard.New(dashboard.Options{Source: &source{}}).Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(local.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- local.Run(ctx) }()
	c := browser(t)
	at.Path = "/stream"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	first := make([]byte, len("event: changed"))
	if _, err := io.ReadFull(answer.Body, first); err != nil || string(first) != "event: changed" {
		t.Fatalf("the stream begins with %q: %v", first, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}

// lines passes on the attributes of the line that says where the page is.
type lines struct {
	slog.Handler
	at chan<- string
}

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) Handle(_ context.Context, r slog.Record) error {
	page, at := false, ""
	r.Attrs(func(a slog.Attr) bool {
		page = page || a.Key == "server" && a.Value.String() == "page"
		if a.Key == "url" || a.Key == "address" {
			at = a.Value.String()
		}
		return true
	})
	if page {
		l.at <- at
	}
	return nil
}

// operator runs one with its page until the test ends, and returns where the page is.
func operator(t *testing.T, address string) string {
	t.Helper()
	at := make(chan string, 1)
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Name: "shop", Scheme: runtime.NewScheme(), Log: slog.New(lines{slog.DiscardHandler, at}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := dashboard.Add(m, dashboard.Options{Address: address}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
	select {
	case where := <-at:
		return where
	case err := <-ended:
		ended <- err
		t.Fatalf("it ended: %v", err)
		return ""
	}
}

func TestAnOperatorServesItsPage(t *testing.T) {
	t.Parallel()
	at := operator(t, "127.0.0.1:0")
	status, text := body(t, browser(t), at)
	if status != http.StatusOK || !strings.Contains(text, "Nothing has been reconciled yet") || strings.Contains(text, "token=") {
		t.Errorf("it answers %d:\n%s", status, text)
	}
}

func TestAnOperatorGuardsItsPageWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	_, port, _ := strings.Cut(strings.TrimPrefix(operator(t, "0.0.0.0:0"), "[::]"), ":")
	status, text := body(t, browser(t), "https://127.0.0.1:"+port+"/")
	if status != http.StatusUnauthorized || !strings.Contains(text, "bearer token") {
		t.Errorf("it answers %d:\n%s", status, text)
	}
}

func TestAddNeedsAnAddress(t *testing.T) {
	t.Parallel()
	if err := dashboard.Add(nil, dashboard.Options{}); err == nil || !strings.Contains(err.Error(), "Address") {
		t.Errorf("the error is %v", err)
	}
}
