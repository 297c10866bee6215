// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
)

// proxied serves a proxy of the machine "m" for a server below /base/.
func proxied(t *testing.T, target http.Handler) (host, path string) {
	t.Helper()
	behind := httptest.NewServer(target)
	t.Cleanup(behind.Close)
	_, host, path = serve(t, stream.Proxy{Target: func(context.Context, *resource.Request) (*url.URL, error) {
		return url.Parse(behind.URL + "/base/")
	}}.Subresource())
	return host, path + "proxy"
}

func TestProxyKeepsPathsBelowItsTarget(t *testing.T) {
	t.Parallel()
	host, path := proxied(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }))
	for below, want := range map[string]string{
		"":                 "200 /base",
		"/":                "200 /base/",
		"/a//b/?c=%2F":     "200 /base/a//b/?c=%2F",
		"/a%2Fb/c%20d/..e": "200 /base/a%2Fb/c%20d/..e",
		"/..":              "400 ",
		"/a/../../secret":  "400 ",
		"/%2e%2E/secret":   "400 ",
		"/a%2f..%2f..%2fb": "400 ",
		"/./a":             "400 ",
		"/a/%252e%252e/b":  "200 /base/a/%252e%252e/b",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path, below) // as it is: a client would clean it
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d %s", answer.StatusCode, everything(t, answer.Body))
		if got != want && !(strings.HasPrefix(want, "400") && strings.HasPrefix(got, "400") && strings.Contains(got, "must not have the segment")) {
			t.Errorf("%s: %s, want %s", below, got, want)
		}
		_ = conn.Close()
	}
}

func TestProxyPassesUpgradesOn(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	host, path := proxied(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" || r.URL.Path != "/base/shell" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
		ended <- struct{}{}
	}))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := fmt.Fprintf(conn, "GET %s/shell HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Upgrade") != "echo" {
		t.Fatalf("the answer is %s %v", answer.Status, answer.Header)
	}
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(conn, line); err != nil {
			t.Fatal(err)
		}
		if got, err := reader.ReadString('\n'); err != nil || got != line {
			t.Fatalf("%q: %v", got, err)
		}
	}
	_ = conn.Close()
	select {
	case <-ended:
	case <-time.After(limit):
		t.Fatal("the target still has the connection of a client that is gone")
	}
}

func TestProxyPassesNoCredentialsOn(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 2)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	}))
	t.Cleanup(target.Close)
	_, host, path := serve(t, stream.Proxy{Target: func(_ context.Context, r *resource.Request) (*url.URL, error) {
		if r.Name != "m" {
			return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
		}
		return url.Parse(target.URL + "/base/")
	}}.Subresource())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+path+"proxy/a/b?c=d", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Remote-User", "X-Remote-Extra-Scope", "X-Other", "Sec-Websocket-Protocol"} {
		r.Header.Set(name, "secret")
	}
	r.Header["x_remote_group"] = []string{"secret"}
	r.Header.Add("Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		t.Errorf("a redirect of the target: %s", answer.Status)
	}
	got := <-seen
	if got.URL.String() != "/base/a/b?c=d" || got.Method != http.MethodPost {
		t.Errorf("the target was asked %s %s", got.Method, got.URL)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Remote-User", "X-Remote-Extra-Scope", "X_remote_group", "x_remote_group"} {
		if got.Header.Get(name) != "" {
			t.Errorf("the target was sent %s", name)
		}
	}
	if got := got.Header["Sec-Websocket-Protocol"]; len(got) != 1 || got[0] != "secret" {
		t.Errorf("the target was sent the protocols %q", got)
	}
	if got.Header.Get("X-Other") != "secret" {
		t.Error("X-Other is lost")
	}
}
