// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/websocket"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
)

// socket returns what a WebSocket can be made of, if a watch asks for one: browsers
// read no other streams.
func socket(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
	if !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, false
	}
	for {
		if _, ok := w.(http.Hijacker); ok {
			return w, true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil, false
		}
		w = inner.Unwrap()
	}
}

// serveSocket sends a watch over a WebSocket, every event as a message of its own,
// until the watch or the client ends it. What the client says is dropped.
func (r *watching) serveSocket(ctx context.Context, w http.ResponseWriter) error {
	r.out.w.Code = http.StatusBadRequest // unless the client knows how to ask
	var err error
	websocket.Handler(func(ws *websocket.Conn) {
		r.out.w.Code = http.StatusSwitchingProtocols
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if ws.PayloadType = websocket.TextFrame; r.out.choice.Media == negotiate.Protobuf {
			ws.PayloadType = websocket.BinaryFrame
		}
		r.out.socket = ws
		var listening sync.WaitGroup
		listening.Go(func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, ws) // that the client has left is no error
		})
		err = r.serve(ctx)
		_ = ws.SetWriteDeadline(time.Now().Add(exchange.Stall)) // it may be closed already
		_ = ws.Close()
		listening.Wait()
	}).ServeHTTP(w, r.out.req.HTTP)
	return err
}

// messages sends the frames that have been gathered, one by one.
func (o *watchWriter) messages() error {
	if err := o.socket.SetWriteDeadline(time.Now().Add(exchange.Stall)); err != nil {
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
