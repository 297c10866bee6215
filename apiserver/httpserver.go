// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"time"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// What one connection may cost.
const (
	// headerTimeout bounds the TLS handshake, and reading the headers of a request.
	headerTimeout = 10 * time.Second
	// idleTimeout is when a connection without requests is closed.
	idleTimeout = 90 * time.Second
	// maxHeaderBytes is the size of the headers of a request, its path included. Over
	// HTTP/2 a byte may stand for a header that was sent before, so that this is also
	// what one byte may cost. Load balancers pass on 60 KB at most.
	maxHeaderBytes = 128 << 10
	// maxStreams is how many requests share a connection of HTTP/2, as kube-apiserver
	// allows.
	maxStreams = 100
	// maxFrame is the largest frame of HTTP/2 that a client may send. The server makes
	// room for a frame when it has read the length.
	maxFrame = 16 << 10
	// streamBuffer and connectionBuffer are how much of the body of one request, and of
	// those of one connection, waits to be read.
	streamBuffer, connectionBuffer = 256 << 10, 1 << 20
	// pingAfter is when a silent client of HTTP/2 is asked whether it lives, pingTimeout
	// how long it has to answer.
	pingAfter, pingTimeout = 30 * time.Second, 15 * time.Second
)

// HTTPServer returns what serves [Server.Handler] over HTTP/1.1 and, over TLS, HTTP/2,
// with bounds for what clients may cost before anybody knows who they are. The caller
// may change it, and serves it.
//
// Requests that may not last have Limits.RequestTimeout, then reading their body fails
// and writing their answer ends the stream or connection. Those that may last, such as
// watches, end when the client takes nothing for half a minute. The handler itself sees
// to both; another server has to let it set deadlines ([http.ResponseController]), and
// its WriteTimeout is for the end of an answer, which is written after the handler.
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
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: connectionBuffer,
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
			WriteByteTimeout:              exchange.Stall,
		},
	}
	if limit := s.limits.RequestTimeout; limit > 0 {
		out.WriteTimeout = limit + exchange.WriteGrace
		out.HTTP2.WriteByteTimeout = min(exchange.Stall, out.WriteTimeout)
	}
	return out
}
