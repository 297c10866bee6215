// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controlplane/kubelet"
)

// newKubelet starts a kubelet that answers with handler, and returns it with a request to
// it.
func newKubelet(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *kubelet.Target) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, &kubelet.Target{Node: "n1", Host: server.Listener.Addr().String(), Path: "/logs", Query: url.Values{"tail": {"3"}}, What: "pods/log", Name: "p"}
}

// newProxy returns a proxy that may connect to this machine, changed by edit. Its client
// certificate is that of the kubelet.
func newProxy(t *testing.T, server *httptest.Server, edit func(*kubelet.Options)) *kubelet.Proxy {
	t.Helper()
	o := kubelet.Options{Reach: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	if edit != nil {
		edit(&o)
	}
	p := kubelet.New(o, func() (*tls.Certificate, error) { return &server.TLS.Certificates[0], nil })
	t.Cleanup(p.Close)
	return p
}

func TestEndpointPrefersInternalAddresses(t *testing.T) {
	t.Parallel()
	address := func(kind corev1.NodeAddressType, text string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: kind, Address: text}
	}
	for _, test := range []struct {
		name      string
		port      int32
		addresses []corev1.NodeAddress
		want      string
	}{
		{"internal", 10250, []corev1.NodeAddress{address("Hostname", "n"), address("ExternalIP", "192.0.2.1"), address("InternalIP", "10.0.0.1")}, "10.0.0.1:10250"},
		{"external", 10250, []corev1.NodeAddress{address("Hostname", "n"), address("ExternalIP", "192.0.2.1"), address("InternalIP", "")}, "192.0.2.1:10250"},
		{"host name", 10250, []corev1.NodeAddress{address("Hostname", "n")}, "n:10250"},
		{"IPv6", 1, []corev1.NodeAddress{address("InternalIP", "fd00::1")}, "[fd00::1]:1"},
		{"others", 10250, []corev1.NodeAddress{address("InternalDNS", "n")}, ""},
		{"no port", 0, []corev1.NodeAddress{address("InternalIP", "10.0.0.1")}, ""},
		{"no addresses", 10250, nil, ""},
	} {
		node := &corev1.Node{}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = test.port
		node.Status.Addresses = test.addresses
		if got := kubelet.Endpoint(node); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestProxyPassesLogsOn(t *testing.T) {
	t.Parallel()
	server, target := newKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s of %d certificates", r.Method, r.URL, len(r.TLS.PeerCertificates))
	})
	w := httptest.NewRecorder()
	if err := newProxy(t, server, nil).Logs(t.Context(), w, target, false); err != nil {
		t.Fatal(err)
	}
	if got := w.Body.String(); w.Code != 200 || got != "GET /logs?tail=3 of 1 certificates" || w.Header().Get("Content-Type") != "text/plain" || w.Flushed {
		t.Errorf("%d %s %v, flushed: %v", w.Code, got, w.Header(), w.Flushed)
	}
}

// TestProxySendsLogsAsTheyCome: the first line arrives before the kubelet writes the
// second.
func TestProxySendsLogsAsTheyCome(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	server, target := newKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-read:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "second\n")
	})
	p := newProxy(t, server, nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.Logs(r.Context(), w, target, true); err != nil {
			t.Error(err)
		}
	}))
	defer front.Close()
	response, err := front.Client().Get(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); line != "first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	close(read)
	if line, err := lines.ReadString('\n'); line != "second\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestProxyReturnsErrorsOfKubelets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		code, want int
		message    string
	}{
		{"forbidden", " no terminal here\n", 403, 403, "no terminal here"},
		{"not found", "no container", 404, 404, "the server could not find the requested resource ( pods/log p)"},
		{"bad request", "which container?", 400, 400, "which container?"},
		{"internal error", "it broke", 500, 500, "Internal error occurred: it broke"},
		{"internal error without a text", "", 500, 500, "Internal error occurred: the kubelet says nothing more"},
		{"redirect", "", 302, 502, "pods/log: the kubelet of node n1 answers with a redirect, and redirects are not followed"},
		{"long text", strings.Repeat("x", 100<<10), 400, 400, strings.Repeat("x", 10<<10)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server, target := newKubelet(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://192.0.2.1/")
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.text)
			})
			w := httptest.NewRecorder()
			err := newProxy(t, server, nil).Logs(t.Context(), w, target, false)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || int(status.Status().Code) != test.want || !strings.Contains(err.Error(), test.message) || strings.Contains(err.Error(), strings.Repeat("x", 10<<10+1)) {
				t.Errorf("%v, want %d %.100s", err, test.want, test.message)
			}
			if w.Body.Len() > 0 {
				t.Errorf("it has written %q", w.Body)
			}
		})
	}
}

func TestProxyConnectsOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	server, target := newKubelet(t, func(http.ResponseWriter, *http.Request) { t.Error("the kubelet was reached") })
	for name, edit := range map[string]func(*kubelet.Options){
		"by default":       func(o *kubelet.Options) { o.Reach = nil },
		"another network":  func(o *kubelet.Options) { o.Reach = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} },
		"a mapped network": func(o *kubelet.Options) { o.Reach = []netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.0/104")} },
	} {
		p := newProxy(t, server, edit)
		upgrade := httptest.NewRequest(http.MethodPost, "/exec", nil)
		upgrade.Header.Set("Connection", "Upgrade")
		upgrade.Header.Set("Upgrade", "SPDY/3.1")
		for _, err := range []error{
			p.Logs(t.Context(), httptest.NewRecorder(), target, false),
			p.Upgrade(t.Context(), hijackable{ResponseRecorder: httptest.NewRecorder()}, upgrade, target),
		} {
			if want := "pods/log: the kubelet of node n1 is at " + target.Host + ", and this server may not connect there: allow it with steer up --kubelets"; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestProxyVerifiesKubeletsByTheGivenAuthorities(t *testing.T) {
	t.Parallel()
	server, target := newKubelet(t, func(http.ResponseWriter, *http.Request) {})
	err := newProxy(t, server, func(o *kubelet.Options) { o.Authorities = x509.NewCertPool() }).Logs(t.Context(), httptest.NewRecorder(), target, false)
	if err == nil || !strings.Contains(err.Error(), "cannot be reached: tls: failed to verify certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	unasked := *target
	unasked.Unverified = true
	if err := newProxy(t, server, func(o *kubelet.Options) { o.Authorities = x509.NewCertPool() }).Logs(t.Context(), httptest.NewRecorder(), &unasked, false); err != nil {
		t.Errorf("an unknown authority that is not asked: %v", err)
	}
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	if err := newProxy(t, server, func(o *kubelet.Options) { o.Authorities = known }).Logs(t.Context(), httptest.NewRecorder(), target, false); err != nil {
		t.Errorf("the known authority: %v", err)
	}
}

func TestProxyShowsTheCertificateOfItsOptionsAnew(t *testing.T) {
	t.Parallel()
	server, target := newKubelet(t, func(http.ResponseWriter, *http.Request) {})
	shown := 0
	p := newProxy(t, server, func(o *kubelet.Options) {
		o.Certificate = func() (*tls.Certificate, error) {
			shown++
			return &server.TLS.Certificates[0], nil
		}
	})
	for range 2 {
		if err := p.Logs(t.Context(), httptest.NewRecorder(), target, false); err != nil {
			t.Error(err)
		}
	}
	if shown != 2 {
		t.Errorf("the certificate was asked for %d times in two connections", shown)
	}
}

func TestProxyReportsItsOwnCertificateThatFails(t *testing.T) {
	t.Parallel()
	_, target := newKubelet(t, func(http.ResponseWriter, *http.Request) {})
	p := kubelet.New(kubelet.Options{Reach: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, func() (*tls.Certificate, error) { return nil, errors.New("no key") })
	defer p.Close()
	if err := p.Logs(t.Context(), httptest.NewRecorder(), target, false); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Error(err)
	}
}

func TestProxyEndsItsConnectionsWhenItIsClosed(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server, target := newKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	})
	p := newProxy(t, server, nil)
	done := make(chan error)
	w := began{httptest.NewRecorder(), make(chan struct{})}
	go func() { done <- p.Logs(context.Background(), w, target, false) }()
	<-w.header
	p.Close()
	<-ended
	if err := <-done; err != nil {
		t.Error(err)
	}
	p.Close()
	if err := p.Logs(t.Context(), httptest.NewRecorder(), target, false); err == nil {
		t.Error("a closed proxy connects")
	}
}

// began is a writer that closes header when an answer begins.
type began struct {
	*httptest.ResponseRecorder
	header chan struct{}
}

func (b began) WriteHeader(code int) {
	b.ResponseRecorder.WriteHeader(code)
	close(b.header)
}

// hijackable is a writer whose connection can be taken over.
type hijackable struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if h.conn == nil {
		return nil, nil, errors.New("it is gone")
	}
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}
