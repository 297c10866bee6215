// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
)

// webSocketRequest reports whether a watch is requested over a WebSocket, as browsers
// do, and returns the writer that can be upgraded to one.
func webSocketRequest(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
	if !exchange.Upgrading(r) || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, false
	}
	return exchange.Hijackable(w)
}

// serveWebSocket is run.serve over a WebSocket, one message per event. The client may end the
// watch by closing it. Messages of the client are dropped.
func (r *run) serveWebSocket(ctx context.Context, w http.ResponseWriter, events func(context.Context) error) {
	r.out.w.Code = http.StatusBadRequest // replaced if the handshake succeeds
	websocket.Handler(func(ws *websocket.Conn) {
		r.out.w.Code = http.StatusSwitchingProtocols
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if ws.PayloadType = websocket.TextFrame; r.out.req.Choice.Media == negotiation.Protobuf {
			ws.PayloadType = websocket.BinaryFrame
		}
		r.out.socket = ws
		var listening sync.WaitGroup
		listening.Go(func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, ws) // a client that closes the connection is not an error
		})
		r.serve(ctx, events)
		_ = ws.SetWriteDeadline(time.Now().Add(exchange.WriteTimeout)) // it may be closed already
		_ = ws.Close()
		listening.Wait()
	}).ServeHTTP(w, r.out.req.HTTP)
}

// writeMessages sends the buffered frames, one message each.
func (o *writer) writeMessages() error {
	if err := o.socket.SetWriteDeadline(time.Now().Add(exchange.WriteTimeout)); err != nil {
		return err
	}
	begin := 0
	for _, end := range o.ends {
		if _, err := o.socket.Write((*o.buffer)[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	o.ends = o.ends[:0]
	return nil
}
