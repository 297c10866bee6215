// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/internal/connections"
)

// Limits of one connection.
const (
	// headerTimeout bounds the TLS handshake, and reading the headers of a request.
	headerTimeout = 10 * time.Second
	// idleTimeout is when a connection without requests is closed.
	idleTimeout = 90 * time.Second
	// maxHeaderBytes bounds the headers of a request, its path included. With HTTP/2
	// one byte may refer to a header that was sent before, so this is also the cost of
	// one byte. Load balancers forward at most 60 KB.
	maxHeaderBytes = 128 << 10
	// maxStreams is how many requests share a connection of HTTP/2, as kube-apiserver
	// allows.
	maxStreams = 100
	// maxFrame is the largest HTTP/2 frame that a client may send. The server allocates
	// a frame when it has read its length.
	maxFrame = 16 << 10
	// streamBuffer and connectionBuffer bound the unread bytes of the body of one
	// request, and of all bodies of one connection.
	streamBuffer, connectionBuffer = 256 << 10, 1 << 20
	// pingAfter is when a silent HTTP/2 client is pinged, and pingTimeout how long it
	// has to answer.
	pingAfter, pingTimeout = 30 * time.Second, 15 * time.Second
)

// Bound returns a listener for [Server.HTTPServer], with Limits.OpenConnections.
func (s *Server) Bound(l net.Listener) net.Listener {
	return connections.Bound(l, cmp.Or(s.limits.OpenConnections, -1))
}

// HTTPServer returns a server of [Server.Handler] over HTTP/1.1 and, over TLS, HTTP/2,
// with limits on what clients may cost before they are authenticated. The caller may
// change it, and serves it on a listener of [Server.Bound].
//
// Requests have Limits.RequestTimeout; after that reading their body fails and writing
// their answer closes the stream or connection. Long-running requests, such as watches,
// end when the client reads nothing for half a minute. The handler sets these deadlines
// itself; another server must support them ([http.ResponseController]), and its
// WriteTimeout applies to the end of an answer, which is written after the handler.
func (s *Server) HTTPServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	out := &http.Server{
		Handler:           s.Handler(),
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       func(ctx context.Context, _ net.Conn) context.Context { return exchange.WithConnection(ctx) },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: connectionBuffer,
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
			WriteByteTimeout:              exchange.WriteTimeout,
		},
	}
	if limit := s.limits.RequestTimeout; limit > 0 {
		out.WriteTimeout = limit + exchange.WriteGrace
		out.HTTP2.WriteByteTimeout = min(exchange.WriteTimeout, out.WriteTimeout)
	}
	return out
}
