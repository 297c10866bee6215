// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/controlplane/kubelet"
)

// upgradeRequest is what a browser sends, with credentials in every place.
func upgradeRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/default/pods/p/exec", nil)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "User-Agent": "test", "Sec-Websocket-Version": "13",
		"Sec-Websocket-Protocol": "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io",
		"Authorization":          "Bearer secret", "Cookie": "secret=1", "Impersonate-User": "admin", "X-Remote-User": "admin", "X-Forwarded-For": "10.0.0.1",
	} {
		r.Header.Set(name, value)
	}
	return r
}

func TestUpgradePassesNoCredentialsOn(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 2)
	server, target := newKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r
		http.Error(w, "no terminal here", http.StatusForbidden)
	})
	p := newProxy(t, server, nil)
	w := httptest.NewRecorder()
	err := p.Upgrade(t.Context(), hijackable{ResponseRecorder: w}, upgradeRequest(), target)
	if err == nil || !strings.Contains(err.Error(), "no terminal here") || w.Header().Get("Connection") != "close" {
		t.Errorf("%v, %v", err, w.Header())
	}
	r := <-got
	want := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "User-Agent": {"test"}, "Sec-Websocket-Version": {"13"}, "Content-Length": {"0"},
		"Sec-Websocket-Protocol": {"v5.channel.k8s.io, v4.channel.k8s.io"},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" || r.Method != http.MethodPost || r.URL.String() != "/logs?tail=3" {
		t.Errorf("%s %s (-want +got):\n%s", r.Method, r.URL, diff)
	}
	onlyToken := upgradeRequest()
	onlyToken.Header.Set("Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0")
	_ = p.Upgrade(t.Context(), hijackable{ResponseRecorder: w}, onlyToken, target)
	if r := <-got; r.Header["Sec-Websocket-Protocol"] != nil {
		t.Errorf("protocols without the token: %q", r.Header["Sec-Websocket-Protocol"])
	}
}

func TestUpgradeRefusesRequestsThatCannotBeUpgraded(t *testing.T) {
	t.Parallel()
	server, target := newKubelet(t, func(http.ResponseWriter, *http.Request) { t.Error("the kubelet was reached") })
	p := newProxy(t, server, nil)
	for name, header := range map[string]string{"without Upgrade": "Upgrade", "without Connection": "Connection"} {
		r := upgradeRequest()
		r.Header.Del(header)
		if err := p.Upgrade(t.Context(), hijackable{ResponseRecorder: httptest.NewRecorder()}, r, target); err == nil || err.Error() != "Upgrade request required" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.Upgrade(t.Context(), httptest.NewRecorder(), upgradeRequest(), target); err == nil || !strings.Contains(err.Error(), "use HTTP/1.1, over a socket") {
		t.Errorf("over HTTP/2: %v", err)
	}
}

func TestUpgradeRefusesAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	server, target := newKubelet(t, func(http.ResponseWriter, *http.Request) {})
	err := newProxy(t, server, nil).Upgrade(t.Context(), hijackable{ResponseRecorder: httptest.NewRecorder()}, upgradeRequest(), target)
	if err == nil || err.Error() != "pods/log: the kubelet of node n1 does not upgrade the connection" {
		t.Error(err)
	}
}

// upgraded starts an upgrade to a kubelet that serves its connection with echo, and
// returns the connection of the client after the answer, and what Upgrade returns.
func upgraded(t *testing.T, p func(*httptest.Server) *kubelet.Proxy, serve func(conn net.Conn, from io.Reader)) (net.Conn, *bufio.Reader, chan error, *kubelet.Proxy) {
	t.Helper()
	server, target := newKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		// The first bytes of the connection come with the answer.
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\nhello ")
		serve(conn, buffered)
	})
	proxy := p(server)
	front, client := net.Pipe()
	done := make(chan error, 1)
	// A writer inside another one, as middleware does it.
	w := struct{ http.ResponseWriter }{hijackable{httptest.NewRecorder(), front}}
	go func() { done <- proxy.Upgrade(t.Context(), unwrapping{w, w.ResponseWriter}, upgradeRequest(), target) }()
	reader := bufio.NewReader(client)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "websocket" {
		t.Errorf("%+v", response)
	}
	return client, reader, done, proxy
}

type unwrapping struct {
	http.ResponseWriter
	inner http.ResponseWriter
}

func (u unwrapping) Unwrap() http.ResponseWriter { return u.inner }

func TestUpgradeTunnelsBothDirections(t *testing.T) {
	t.Parallel()
	client, reader, done, _ := upgraded(t, func(s *httptest.Server) *kubelet.Proxy { return newProxy(t, s, nil) },
		func(conn net.Conn, from io.Reader) { _, _ = io.Copy(conn, from) })
	if _, err := io.WriteString(client, "world"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("hello world"))
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "hello world" {
		t.Errorf("%q, %v", got, err)
	}
	_ = client.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUpgradeEndsWithTheKubelet(t *testing.T) {
	t.Parallel()
	client, reader, done, _ := upgraded(t, func(s *httptest.Server) *kubelet.Proxy { return newProxy(t, s, nil) },
		func(net.Conn, io.Reader) {})
	defer client.Close()
	if got, err := io.ReadAll(reader); err != nil || string(got) != "hello " {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUpgradeEndsWithTheProxy(t *testing.T) {
	t.Parallel()
	client, reader, done, proxy := upgraded(t, func(s *httptest.Server) *kubelet.Proxy { return newProxy(t, s, nil) },
		func(conn net.Conn, from io.Reader) { _, _ = io.Copy(conn, from) })
	defer client.Close()
	proxy.Close()
	if _, err := io.ReadAll(reader); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
