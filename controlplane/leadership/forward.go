// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver"
)

// pause is how long a request waits for a new leader before the known one is tried again.
const pause = 100 * time.Millisecond

// abandonAfter is how long a request waits for a leader that has been replaced.
const abandonAfter = 5 * time.Second

// Forward implements [apiserver.Leadership].
func (s *Server) Forward(w http.ResponseWriter, r apiserver.Forwarded) (answered bool, err error) {
	ctx := r.Request.Context()
	leader, elected := s.options.Store.Leader()
	if leader.Term == 0 || leader.Identity == s.options.Identity {
		return false, s.await(ctx, elected, againAfter)
	}
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	go abandon(sending, cancel, elected)
	request, err := s.request(r.Request.WithContext(sending), r, leader.Address)
	if err != nil {
		return false, err
	}
	answer, err := s.transport.RoundTrip(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, ctx.Err()
	case notConnected(err):
		return false, s.await(ctx, elected, pause)
	case err != nil:
		s.options.Log.Error("a request broke on its way to the server that leads", "method", request.Method, "path", request.URL.Path, "leader", leader.Address, "err", err)
		return false, apierrors.NewInternalError(fmt.Errorf("the connection to the server that executes the request broke, whether it was executed is unknown: %w", err))
	}
	defer func() { _ = answer.Body.Close() }()
	if theirs := answer.Header.Get(protocolHeader); theirs != "" {
		s.options.Log.Error("the server that leads is of a version that does not work together with this one", "leader", leader.Address, "protocol", theirs, "own", s.protocol)
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf("the server at %s, which executes requests, has version %s of the protocol between servers, and this one %s: "+
			"upgrade by way of a release that has both, or stop all servers first", leader.Address, theirs, s.protocol))
	}
	if answer.Header.Get(refusedHeader) != "" {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // a short Status
		return false, s.await(ctx, elected, pause)
	}
	copyHeader(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // the answer must not look complete
	}
	return true, nil
}

// abandon ends a request some time after its leader has been replaced: that one may be cut
// off, and makes no write any more.
func abandon(sending context.Context, cancel func(), elected <-chan struct{}) {
	select {
	case <-elected:
		sleep(sending, abandonAfter)
		cancel()
	case <-sending.Done():
	}
}

// await returns when another server is elected, the phase of this one changes or a while
// has passed. It fails if ctx ends.
func (s *Server) await(ctx context.Context, elected <-chan struct{}, atMost time.Duration) error {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-elected:
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// connectError is the end of an attempt to connect. The transport begins another attempt at
// a request only if the one before was certainly not executed, so that a request that ends
// with this error was not.
type connectError struct {
	address string
	err     error
}

func (e *connectError) Error() string {
	return fmt.Sprintf("leadership: connect to %s: %v", e.address, e.err)
}

func (e *connectError) Unwrap() error { return e.err }

func notConnected(err error) bool {
	_, ok := errors.AsType[*connectError](err)
	return ok
}

// request returns what is sent to the leader.
func (s *Server) request(from *http.Request, r apiserver.Forwarded, address string) (*http.Request, error) {
	url := *from.URL
	url.Scheme, url.Host = "https", address
	out := (&http.Request{Method: from.Method, URL: &url, Host: address, Header: from.Header.Clone(), ContentLength: int64(len(r.Body))}).WithContext(from.Context())
	for _, name := range dropped(out.Header) {
		out.Header.Del(name)
	}
	if r.Token != "" {
		out.Header.Set(tokenHeader, r.Token)
	} else {
		user, err := encodeUser(r.User)
		if err != nil {
			return nil, err
		}
		out.Header.Set(userHeader, user)
	}
	out.Header.Set(protocolHeader, s.protocol)
	out.Header.Set("Audit-Id", r.AuditID)
	if _, named := out.Header["User-Agent"]; !named {
		out.Header["User-Agent"] = nil // the transport would add its own
	}
	if len(r.Body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(r.Body))
		// The transport calls it for requests that the other side has not begun with.
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	}
	return out, nil
}

// dropped returns the headers of a client that no other server is sent: those of the
// connection, credentials, and the names of users that are not to be believed. What they
// impersonate is for the other server to authorize.
func dropped(h http.Header) []string {
	out := []string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Authorization", "Proxy-Authorization", "Cookie", "Content-Length",
		"Idempotency-Key", "X-Idempotency-Key", // the transport would send such requests twice
	}
	for _, listed := range h["Connection"] {
		for name := range strings.SplitSeq(listed, ",") {
			out = append(out, strings.TrimSpace(name))
		}
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, HeaderPrefix) {
			out = append(out, name)
		}
	}
	return out
}

// copyHeader replaces headers of an answer by those of the leader.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		switch name {
		case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Date":
		default:
			if !strings.HasPrefix(name, HeaderPrefix) {
				to[name] = values
			}
		}
	}
}

// connectTimeout bounds an attempt to connect to another server.
const connectTimeout = 5 * time.Second

// newTransport connects to other servers.
func (s *Server) newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{
		Protocols:           protocols,
		DialTLSContext:      s.connect,
		DisableCompression:  true,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 4,
		// A leader that is cut off is noticed.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
	}
}

// connect opens a connection on which both sides have shown their certificates.
func (s *Server) connect(ctx context.Context, network, address string) (net.Conn, error) {
	dial := s.options.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	authority, err := s.options.Authority()
	if err != nil {
		return nil, &connectError{address, err}
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	raw, err := dial(ctx, network, address)
	if err != nil {
		return nil, &connectError{address, err}
	}
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: ServerName, RootCAs: roots, NextProtos: []string{"h2"},
		// The authorities that the server names are those of its users.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.options.Certificate() },
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &connectError{address, err}
	}
	return conn, nil
}

// Close closes idle connections. Requests under way go on.
func (s *Server) Close() { s.transport.CloseIdleConnections() }
