// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/spdystream"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// The protocol of forwarded ports, and its name where SPDY is carried by a WebSocket.
const (
	forwardProtocol = "portforward.k8s.io"
	tunnelProtocol  = "SPDY/3.1+" + forwardProtocol
)

// Headers of the two streams of a forwarded connection.
const (
	portHeader      = "Port"
	requestIDHeader = "Requestid"
)

// The types of the two streams.
const (
	dataStream  = "data"
	errorStream = "error"
)

// PortForward forwards connections of a client to ports of an object.
type PortForward struct {
	// Dial connects to a port; required. It decides where the server connects to.
	Dial func(ctx context.Context, r *resource.Request, port uint16) (io.ReadWriteCloser, error)
}

// Subresource returns the subresource portforward. As for a [Command], clients need the right
// to create or get.
func (f PortForward) Subresource() resource.Subresource {
	return resource.Subresource{Name: "portforward", Verbs: streamVerbs(), Backend: f}
}

// Connect implements [resource.Connecter].
func (f PortForward) Connect(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	dial := func(ctx context.Context, port uint16) (io.ReadWriteCloser, error) { return f.Dial(ctx, r, port) }
	switch {
	case !exchange.Upgrading(h):
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "Upgrade request required")
	case strings.EqualFold(h.Header.Get("Upgrade"), "websocket"):
		serveWebSocket(w, h, []string{tunnelProtocol}, func(ws *websocket.Conn) { forward(ctx, ws, dial) })
	default:
		if conn := upgradeSPDY(w, h, forwardProtocol); conn != nil {
			forward(ctx, conn, dial)
		}
	}
}

// pair is the two streams of a forwarded connection.
type pair struct{ data, failure *spdystream.Stream }

// forward serves the forwarded connections of one client until it is gone.
func forward(ctx context.Context, conn net.Conn, dial func(context.Context, uint16) (io.ReadWriteCloser, error)) {
	defer func() { _ = conn.Close() }() // it may be closed already
	opened := make(chan *spdystream.Stream, maxStreams)
	spdy, err := serveSPDY(ctx, conn, []string{streamTypeHeader, portHeader, requestIDHeader}, func(s *spdystream.Stream) bool {
		if kind := s.Headers().Get(streamTypeHeader); kind != dataStream && kind != errorStream {
			return false
		}
		opened <- s
		return true
	})
	if err != nil {
		return
	}
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	defer spdy.end()
	defer watch(spdy.gone, spdy.cancel, spdy.probe)()
	pairs := map[string]*pair{}
	for {
		var s *spdystream.Stream
		select {
		case s = <-opened:
		case <-spdy.gone.Done():
			return
		}
		id := s.Headers().Get(requestIDHeader)
		p := pairs[id]
		if p == nil {
			p = &pair{}
			pairs[id] = p
		}
		half := &p.data
		if s.Headers().Get(streamTypeHeader) == errorStream {
			half = &p.failure
		}
		if *half != nil { // there is one
			spdy.forget(s)
			_ = s.Reset() // the client may be gone
			continue
		}
		*half = s
		if p.data == nil || p.failure == nil {
			continue
		}
		delete(pairs, id)
		forwarding.Go(func() {
			defer spdy.forget(p.data, p.failure)
			if err := p.serve(spdy.gone, dial); err != nil {
				_, _ = io.WriteString(p.failure, err.Error()) // the client may be gone
				// A reset could overtake the reply to the stream, and the client would not read why.
				_, _ = p.failure.Close(), p.data.Close() // as above
				_, _ = io.Copy(io.Discard, p.data)       // until the client closes it
			}
			_, _ = p.failure.Close(), p.data.Reset() // as above
		})
	}
}

// serve copies in both directions until both have ended.
func (p *pair) serve(ctx context.Context, dial func(context.Context, uint16) (io.ReadWriteCloser, error)) error {
	port, err := strconv.ParseUint(p.data.Headers().Get(portHeader), 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("unable to parse %q as a port", p.data.Headers().Get(portHeader))
	}
	to, err := dial(ctx, uint16(port))
	if err != nil {
		return fmt.Errorf("error forwarding port %d: %w", port, err)
	}
	end := sync.OnceFunc(func() { _ = to.Close() }) // it may be closed already
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _ = io.Copy(to, p.data) // the end of either side is no error
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // as above
		} else {
			end()
		}
	})
	_, _ = io.Copy(p.data, to) // as above
	_ = p.data.Close()         // as above
	end()
	_ = p.data.Reset() // ends the other direction, as kubelets do
	sending.Wait()
	return nil
}
