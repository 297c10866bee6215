// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
)

// fakeKubelet answers as a kubelet does, and notes what it was asked.
type fakeKubelet struct {
	*httptest.Server
	port string
	// asked is the last request; closed has a value for every connection that has ended.
	asked  atomic.Pointer[http.Request]
	closed chan struct{}
}

func newKubelet(t *testing.T) *fakeKubelet {
	t.Helper()
	k := &fakeKubelet{closed: make(chan struct{}, 100)}
	k.Server = httptest.NewUnstartedServer(http.HandlerFunc(k.serve))
	k.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	k.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			k.closed <- struct{}{}
		}
	}
	k.StartTLS()
	t.Cleanup(k.Close)
	_, k.port, _ = net.SplitHostPort(k.Listener.Addr().String())
	return k
}

func (k *fakeKubelet) serve(w http.ResponseWriter, r *http.Request) {
	k.asked.Store(r)
	switch {
	case strings.Contains(r.URL.Path, "/away"):
		http.Redirect(w, r, "https://192.0.2.1/", http.StatusFound)
	case strings.Contains(r.URL.Path, "/locked"):
		http.Error(w, "no terminal here", http.StatusForbidden)
	case strings.HasPrefix(r.URL.Path, "/containerLogs/"):
		fmt.Fprintf(w, "a line of %s\n", r.URL)
	case r.Header.Get("Upgrade") == "websocket":
		websocket.Server{Handler: func(ws *websocket.Conn) { _, _ = io.Copy(ws, ws) }}.ServeHTTP(w, r)
	default:
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
		k.closed <- struct{}{}
	}
}

// kubeletPlane serves a plane with a Pod of some containers on a node whose kubelet is at a port, and
// returns where its subresources are.
func kubeletPlane(t *testing.T, port string, reach ...string) (base string) {
	t.Helper()
	o := controlplane.Options{ManualControllers: true, Disable: []string{"ServiceAccount"}, Authentication: controlplane.Authentication{
		Tokens: auth.Tokens{"secret": {Name: "admin", Groups: []string{"system:masters"}}, "reader": {Name: "reader", Groups: []string{"system:authenticated"}}},
	}}
	for _, r := range reach {
		o.Kubelets.Reach = append(o.Kubelets.Reach, netip.MustParsePrefix(r))
	}
	plane, err := controlplane.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(plane.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	a := apiOf(t, plane.RESTConfig())
	endpoint := ""
	if port != "" {
		endpoint = ", daemonEndpoints: {kubeletEndpoint: {Port: " + port + "}}"
	}
	a.must("POST", "/api/v1/nodes", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {addresses: [{type: Hostname, address: n1}, {type: InternalIP, address: 127.0.0.1}]"+endpoint+"}\n")
	a.must("POST", "/api/v1/namespaces/default/pods", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n1, containers: [{name: main, image: i}, {name: away, image: i}, {name: locked, image: i}]}\n")
	a.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods/exec], verbs: [get]}]\n")
	a.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: r}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]\n")
	return server.URL + "/api/v1/namespaces/default/pods/p/"
}

// connect sends a request, with an upgrade if one is named, and returns the answer with its text.
func connect(t *testing.T, method, url, token, upgrade string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if upgrade != "" {
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", upgrade)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestKubeletServesLogs(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	base := kubeletPlane(t, k.port, "127.0.0.0/8")
	for _, c := range []struct {
		query string
		code  int
		text  string
	}{
		{"log?container=main&tailLines=3&follow=true&pretty=1", 200, "a line of /containerLogs/default/p/main?follow=true&tailLines=3\n"},
		{"log", 400, "a container name must be specified for pod p, choose one of: [main away locked]"},
		{"log?container=other", 400, "container other is not valid for pod p"},
		{"log?container=main&tailLines=-1", 422, "must be greater than or equal to 0"},
		{"log?container=away", 502, "redirects are not followed"},
		{"log?container=locked", 403, "no terminal here"},
	} {
		response, text := connect(t, "GET", base+c.query, "secret", "")
		if response.StatusCode != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s, want %d %s", c.query, response.StatusCode, text, c.code, c.text)
		}
	}
	r := k.asked.Load()
	if r.Header.Get("Authorization") != "" {
		t.Error("the kubelet got the credentials of the client")
	}
	if got := r.TLS.PeerCertificates[0].Subject.String(); got != "CN=kube-apiserver-kubelet-client,O=system:masters" {
		t.Errorf("the kubelet is shown %q", got)
	}
}

// TestKubeletUpgradesConnections over a WebSocket, and to SPDY.
func TestKubeletUpgradesConnections(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	base := kubeletPlane(t, k.port, "127.0.0.0/8")
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(base, "http")+"exec?container=main&command=ls&command=-l&stdout=true&tty=false", "http://localhost")
	if err != nil {
		t.Fatal(err)
	}
	config.Header = http.Header{"Authorization": {"Bearer secret"}}
	ws, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ws.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(ws, got); err != nil || string(got) != "hello" {
		t.Errorf("over the WebSocket: %q %v", got, err)
	}
	_ = ws.Close()
	if got, want := k.asked.Load().URL.String(), "/exec/default/p/main?command=ls&command=-l&output=1"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}

	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base[:strings.Index(base, "/api")], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// What the client says before it has an answer is not lost.
	_, _ = io.WriteString(conn, "POST /api/v1/namespaces/default/pods/p/portforward HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"+
		"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\nContent-Length: 0\r\n\r\nearly ")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "SPDY/3.1" {
		t.Fatalf("%+v", response)
	}
	_, _ = io.WriteString(conn, "late")
	got = make([]byte, 10)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "early late" {
		t.Errorf("to SPDY: %q %v", got, err)
	}
	r := k.asked.Load()
	if r.Method != "POST" || r.URL.Path != "/portForward/default/p" || r.Header.Get("X-Stream-Protocol-Version") != "portforward.k8s.io" || r.Header.Get("Authorization") != "" {
		t.Errorf("the kubelet was asked %s %s %v", r.Method, r.URL, r.Header)
	}
	_ = conn.Close()
	<-k.closed // the tunnel ends with the client
}

func TestKubeletUpgradesThatFailLeaveNoConnection(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	base := kubeletPlane(t, k.port, "127.0.0.0/8")
	for container, want := range map[string]string{"locked": "no terminal here", "away": "redirects are not followed"} {
		response, text := connect(t, "POST", base+"exec?command=ls&container="+container, "secret", "SPDY/3.1")
		if response.StatusCode < 400 || !strings.Contains(text, want) || !response.Close {
			t.Errorf("%s: %d %s, closed: %t", container, response.StatusCode, text, response.Close)
		}
		<-k.closed
	}
	response, text := connect(t, "POST", base+"exec?command=ls&container=main", "secret", "")
	if response.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Upgrade request required") {
		t.Errorf("without an upgrade: %d %s", response.StatusCode, text)
	}
}

// TestKubeletIsReachedOnlyAtAllowedAddresses, and by users who may create what they ask for.
func TestKubeletIsReachedOnlyAtAllowedAddresses(t *testing.T) {
	t.Parallel()
	k := newKubelet(t)
	for name, c := range map[string]struct {
		port, token string
		reach       []string
		code        int
		text        string
	}{
		"no endpoint":   {"", "secret", []string{"127.0.0.0/8"}, 501, "the nodes of this server run no containers"},
		"out of reach":  {k.port, "secret", []string{"192.0.2.0/24"}, 502, "allow it with steer up --kubelets"},
		"by default":    {k.port, "secret", nil, 502, "allow it with steer up --kubelets"},
		"may only read": {k.port, "reader", []string{"127.0.0.0/8"}, 403, "cannot create resource"},
	} {
		response, text := connect(t, "GET", kubeletPlane(t, c.port, c.reach...)+"exec?command=ls&container=main", c.token, "websocket")
		if response.StatusCode != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %s, want %d %s", name, response.StatusCode, text, c.code, c.text)
		}
	}
	if k.asked.Load() != nil {
		t.Error("the kubelet was asked")
	}
}
