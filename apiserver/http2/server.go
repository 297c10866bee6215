// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"net/http"
	"slices"
	"sync"
	"time"
)

// What a connection may do where the [http.Server] does not say.
const (
	defaultStreams     = 250
	defaultWindow      = 1 << 20
	defaultPingTimeout = 15 * time.Second
	// defaultStall is how long a write may wait for a client that does not read.
	defaultStall = 30 * time.Second
	// lingering is how long a connection that ends waits for the client to read
	// why, and to close it.
	lingering = time.Second
)

// limits of the connections of one server.
type limits struct {
	streams int
	// headers is the size of a request's header list, as RFC 9113 counts it.
	headers int
	// connectionWindow and streamWindow are how much of the bodies of all, and of
	// one, may wait to be read.
	connectionWindow, streamWindow int
	// table is the size of the compression tables.
	table uint32
	// preface bounds the time until the client's settings have come, idle the time
	// without streams, stall that of one write. Once nothing came for quiet, the
	// client is asked whether it lives, and has answer to say so. 0 is no bound.
	preface, idle, stall, quiet, answer time.Duration
}

// host is what the connections of one server share.
type host struct {
	server *http.Server
	limits limits
	names  names
	date   date
	// buffers are [payload]s; they belong to one answer at a time.
	buffers sync.Pool

	mu          sync.Mutex
	connections map[*connection]struct{}
	closing     bool
}

// Configure makes a server answer HTTP/2 with this package. It is called once,
// before the server serves. It takes from the server what it says about bounds:
// IdleTimeout, ReadHeaderTimeout (for the first settings), MaxHeaderBytes, ErrorLog
// and, of HTTP2, MaxConcurrentStreams (250 if it is 0), the receive buffers (1
// MiB), SendPingTimeout (never), PingTimeout (15 s) and WriteByteTimeout (30 s,
// for any one write). ReadTimeout and WriteTimeout are for HTTP/1.1 alone.
// Shutdown of the server lets requests under way end and then closes their
// connections; Close closes them at once.
func Configure(server *http.Server) {
	h := &host{server: server, limits: limitsOf(server), connections: map[*connection]struct{}{}}
	h.buffers.New = func() any { return new(payload) }
	if server.TLSNextProto == nil {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	server.TLSNextProto["h2"] = func(_ *http.Server, conn *tls.Conn, handler http.Handler) { h.serve(conn, handler) }
	server.RegisterOnShutdown(h.shutdown)
}

func limitsOf(server *http.Server) limits {
	var own http.HTTP2Config
	if server.HTTP2 != nil {
		own = *server.HTTP2
	}
	// net/http counts the bytes of the headers, HTTP/2 adds 32 for each of them.
	const fields, overhead = 10, 32
	return limits{
		streams:          cmp.Or(own.MaxConcurrentStreams, defaultStreams),
		headers:          cmp.Or(server.MaxHeaderBytes, http.DefaultMaxHeaderBytes) + fields*overhead,
		connectionWindow: max(cmp.Or(own.MaxReceiveBufferPerConnection, defaultWindow), initialWindow),
		streamWindow:     cmp.Or(own.MaxReceiveBufferPerStream, defaultWindow),
		table:            4096,
		preface:          cmp.Or(server.ReadHeaderTimeout, server.ReadTimeout),
		idle:             cmp.Or(server.IdleTimeout, server.ReadTimeout),
		stall:            cmp.Or(own.WriteByteTimeout, defaultStall),
		quiet:            own.SendPingTimeout,
		answer:           cmp.Or(own.PingTimeout, defaultPingTimeout),
	}
}

// serve answers on one connection until it ends and its handlers have returned.
func (h *host) serve(conn *tls.Conn, handler http.Handler) {
	state := conn.ConnectionState()
	ctx := context.Background()
	if b, ok := handler.(interface{ BaseContext() context.Context }); ok {
		ctx = b.BaseContext() // names the server and the local address, as for HTTP/1.1
	}
	c := newConnection(ctx, h, conn, handler)
	c.tls, c.remote = &state, conn.RemoteAddr().String()
	c.socket, _ = conn.NetConn().(*socket)
	c.insecure = !secure(&state)
	if !h.join(c) {
		c.goAway()
	}
	defer h.leave(c)
	c.serve()
}

// secure tells whether HTTP/2 may be spoken with a cipher (RFC 9113, appendix A).
func secure(s *tls.ConnectionState) bool {
	return s.Version >= tls.VersionTLS13 || s.Version == tls.VersionTLS12 && slices.Contains([]uint16{
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	}, s.CipherSuite)
}

// join notes a connection; false says that the server shuts down.
func (h *host) join(c *connection) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connections[c] = struct{}{}
	return !h.closing
}

func (h *host) leave(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.connections, c)
}

// shutdown asks all clients to go elsewhere.
func (h *host) shutdown() {
	h.mu.Lock()
	h.closing = true
	all := make([]*connection, 0, len(h.connections))
	for c := range h.connections {
		all = append(all, c)
	}
	h.mu.Unlock()
	var group sync.WaitGroup
	for _, c := range all {
		group.Go(c.goAway) // one whose client does not read must not hold up the others
	}
	group.Wait()
}

func (h *host) logf(format string, args ...any) {
	if h.server.ErrorLog != nil {
		h.server.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
