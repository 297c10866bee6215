// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/internal/egress"
)

// Bounds of connections to API servers.
const (
	handshakeTimeout = 10 * time.Second
	// idleTimeout is how long a connection stays open without requests.
	idleTimeout = 90 * time.Second
	// mostIdle connections to one server stay open without requests.
	mostIdle = 25
	// silence is how long a connection of HTTP/2 may be silent until it is tested, and
	// pingTimeout how long the answer to the test may take.
	silence, pingTimeout = 30 * time.Second, 15 * time.Second
	// upgradeTimeout is how long a server may take to answer the request for an upgrade.
	upgradeTimeout = 30 * time.Second
)

// reach is what decides how a server is connected to. Versions with the same share
// connections.
type reach struct {
	service  egress.Service
	bundle   string
	insecure bool
}

func reachOf(s service) reach {
	to := s.Spec.Service
	return reach{
		service: egress.Service{Namespace: to.Namespace, Name: to.Name, Port: kind.Value(to.Port), APIService: true},
		bundle:  string(s.Spec.CABundle), insecure: s.Spec.InsecureSkipTLSVerify,
	}
}

// backend is an API server behind a Service. It is safe for concurrent use.
type backend struct {
	reach
	services *egress.Services
	running  context.Context // the life of the aggregation, and of all connections
	headers  identityHeaders
	tls      *tls.Config
	// err is why it cannot be connected to.
	err error

	mu sync.Mutex
	// carriers are those for the address that Resolve gave last.
	carriers *carriers
}

// carriers send requests to one address.
type carriers struct {
	// address is empty for the endpoints of the Service.
	address string
	// plain carries requests, upgrade those that ask for another protocol, each over a
	// connection of its own.
	plain, upgrade *http.Transport
}

func newBackend(running context.Context, r reach, services *egress.Services, identity Identity) *backend {
	b := &backend{reach: r, services: services, running: running, headers: identity.headers()}
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: r.insecure, ServerName: r.service.ServerName(), CAData: []byte(r.bundle)}}
	if b.tls, b.err = rest.TLSConfigFor(config); b.err != nil {
		return b
	}
	b.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return identity.Certificate() }
	return b
}

// carrier returns what carries a request.
func (b *backend) carrier(ctx context.Context, upgrade bool) (http.RoundTripper, error) {
	if b.err != nil {
		return nil, b.err
	}
	given, ok := b.services.Given(ctx, b.service)
	if ok && given.Transport != nil {
		return given.Transport, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.carriers == nil || b.carriers.address != given.Address {
		b.forget()
		b.carriers = b.connect(given.Address)
	}
	if upgrade {
		return b.carriers.upgrade, nil
	}
	return b.carriers.plain, nil
}

// connect returns carriers without connections.
func (b *backend) connect(address string) *carriers {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var conn net.Conn
		var err error
		if address == "" {
			conn, err = b.services.Dial(ctx, network, b.service)
		} else {
			conn, err = b.services.Dialer().DialContext(ctx, network, address)
		}
		if err != nil {
			return nil, err
		}
		return &connection{conn, context.AfterFunc(b.running, func() { _ = conn.Close() })}, nil
	}
	plain := &http.Transport{
		TLSClientConfig: b.tls, TLSHandshakeTimeout: handshakeTimeout, DialContext: dial,
		MaxIdleConnsPerHost: mostIdle, IdleConnTimeout: idleTimeout, DisableCompression: true,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: pingTimeout},
	}
	upgrade := &http.Transport{
		TLSClientConfig: b.tls.Clone(), TLSHandshakeTimeout: handshakeTimeout, DialContext: dial,
		ResponseHeaderTimeout: upgradeTimeout, DisableCompression: true, DisableKeepAlives: true,
	}
	upgrade.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return &carriers{address: address, plain: plain, upgrade: upgrade}
}

// connection is closed with the aggregation, at the latest: a transport keeps one whose request has
// ended for others.
type connection struct {
	net.Conn
	ended func() bool
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.ended()
	return c.Conn.Close()
}

// close closes the connections without requests.
func (b *backend) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	b.carriers = nil
}

func (b *backend) forget() {
	if b.carriers != nil {
		b.carriers.plain.CloseIdleConnections()
	}
}

// where returns the host and port of the server in messages: the address at which it is
// looked for first.
func (b *backend) where(ctx context.Context) (string, error) {
	if given, ok := b.services.Given(ctx, b.service); ok && given.Transport == nil {
		return given.Address, nil
	} else if ok {
		return b.service.Host(), nil
	}
	addresses, err := b.services.Addresses(b.service)
	if err != nil {
		return "", err
	}
	return addresses[0], nil
}

// maxDocumentBytes bounds a document that is fetched.
const maxDocumentBytes = 64 << 20

// errTooLong is the error of a longer one.
var errTooLong = errors.New("the document is longer than 64 MiB")

// fetched is the answer to a request for a document.
type fetched struct {
	code   int
	header http.Header
	body   []byte
}

// get fetches a document as a user. Redirects are not followed.
func (b *backend) get(ctx context.Context, user *auth.User, path string, header http.Header) (*fetched, error) {
	carrier, err := b.carrier(ctx, false)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.service.Host()+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	b.headers.set(request.Header, user)
	response, err := carrier.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocumentBytes+1))
	if err == nil && len(body) > maxDocumentBytes {
		err = errTooLong
	}
	if err != nil {
		return nil, err
	}
	return &fetched{code: response.StatusCode, header: response.Header, body: body}, nil
}

// versionPath is where the resources of a version are.
func versionPath(s service) string {
	if s.Spec.Group == "" {
		return "/api/" + s.Spec.Version
	}
	return "/apis/" + s.Spec.Group + "/" + s.Spec.Version
}

// Bounds of a check.
const checkTimeout = 5 * time.Second

// checker is the user that checks whether a server answers, and learns what it serves.
func checker() *auth.User {
	return &auth.User{Name: "system:kube-aggregator", Groups: []string{auth.Masters}}
}

// check fails if the server does not answer for a version.
func (b *backend) check(ctx context.Context, s service) error {
	host, err := b.where(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	at := "https://" + host + versionPath(s)
	answer, err := b.get(ctx, checker(), versionPath(s), nil)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
		}
		return fmt.Errorf("failing or missing response from %s: Get %q: %w", at, at, err)
	}
	if answer.code < http.StatusOK || answer.code >= http.StatusMultipleChoices {
		return fmt.Errorf("failing or missing response from %s: bad status from %s: %d", at, at, answer.code)
	}
	return nil
}

// Identity is how the plane shows API servers that it names users.
type Identity struct {
	// Certificate returns the client certificate.
	Certificate func() (*tls.Certificate, error)
	// Proxy has the names of the headers; nil, or a nil list: X-Remote-User and the
	// like. The first of each list is used, and no client can set any of them.
	Proxy *auth.FrontProxy
}

// identityHeaders are the names of the headers that name a user.
type identityHeaders struct {
	user, uid, group, extra string
	// taken are the lower-case names, and prefixes, that clients cannot set.
	taken, prefixes []string
}

func (i Identity) headers() identityHeaders {
	h := identityHeaders{
		user: "X-Remote-User", uid: "X-Remote-Uid", group: "X-Remote-Group", extra: "X-Remote-Extra-",
	}
	if i.Proxy == nil {
		return h
	}
	for _, l := range []struct {
		name  *string
		given []string
		into  *[]string
	}{
		{&h.user, i.Proxy.UserHeaders, &h.taken},
		{&h.uid, i.Proxy.UIDHeaders, &h.taken},
		{&h.group, i.Proxy.GroupHeaders, &h.taken},
		{&h.extra, i.Proxy.ExtraPrefixes, &h.prefixes},
	} {
		if len(l.given) > 0 {
			*l.name = l.given[0]
		}
		for _, name := range l.given {
			*l.into = append(*l.into, auth.PlainHeader(name))
		}
	}
	return h
}
