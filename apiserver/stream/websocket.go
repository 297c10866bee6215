// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// The subprotocols of commands, by preference.
const (
	protocolV5 = "v5.channel.k8s.io" // with closing of single channels
	protocolV4 = "v4.channel.k8s.io"
)

// The channels of a command over a WebSocket: the first byte of each message.
const (
	stdinChannel = iota
	stdoutChannel
	stderrChannel
	statusChannel
	resizeChannel
	closeChannel = 255
)

// maxMessage bounds a message of a client, in bytes; clients send 32 KiB.
const maxMessage = 1 << 20

// closeTimeout is how long a client has to take the end of a stream.
const closeTimeout = 10 * time.Second

// errNoProtocol refuses a handshake.
var errNoProtocol = errors.New("none of the subprotocols of the request is supported")

// serveWebSocket upgrades a request to a WebSocket with one of the protocols and calls
// handle, which may use the connection until it returns.
func serveWebSocket(w http.ResponseWriter, r *http.Request, protocols []string, handle func(ws *websocket.Conn)) {
	hijackable, ok := exchange.Hijackable(w)
	if !ok {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "this connection cannot be upgraded: use HTTP/1.1, over a socket")
		return
	}
	websocket.Server{
		Handshake: func(config *websocket.Config, _ *http.Request) error {
			for _, p := range protocols {
				if slices.Contains(config.Protocol, p) {
					config.Protocol = []string{p}
					return nil
				}
			}
			return errNoProtocol
		},
		Handler: func(ws *websocket.Conn) {
			_ = ws.SetDeadline(time.Time{}) // a connection that is gone fails at its first use
			ws.MaxPayloadBytes = maxMessage
			ws.PayloadType = websocket.BinaryFrame
			handle(ws)
		},
	}.ServeHTTP(hijackable, r)
}

// socket multiplexes the channels of a command.
type socket struct {
	ws *websocket.Conn
	mu sync.Mutex // of messages that are sent
	// inputs are the channels that the client writes to.
	inputs map[byte]*input
	halves bool // the client closes single channels
}

// output is a channel that the server writes to.
type output struct {
	to      *socket
	channel byte
}

// Write implements [io.Writer].
func (o output) Write(p []byte) (int, error) {
	o.to.mu.Lock()
	defer o.to.mu.Unlock()
	if err := websocket.Message.Send(o.to.ws, append([]byte{o.channel}, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// input returns a channel that the client writes to.
func (s *socket) input(channel byte) io.Reader {
	in := newInput()
	s.inputs[channel] = in
	return in
}

// probe sends a ping: a client that is gone is noticed by it while its input, which is not
// read, stands before its end.
func (s *socket) probe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ping := websocket.Codec{Marshal: func(any) ([]byte, byte, error) { return nil, websocket.PingFrame, nil }}
	return ping.Send(s.ws, nil)
}

// receive passes messages on until the connection ends.
func (s *socket) receive() {
	defer func() {
		for _, in := range s.inputs {
			in.end()
		}
	}()
	for {
		var data []byte
		if err := websocket.Message.Receive(s.ws, &data); err != nil {
			return
		}
		switch {
		case len(data) == 0:
		case data[0] == closeChannel && s.halves:
			if len(data) != 2 {
				return
			}
			if in := s.inputs[data[1]]; in != nil {
				in.end()
			}
		default:
			if in := s.inputs[data[0]]; in != nil && len(data) > 1 {
				_, _ = in.Write(data[1:]) // the client may have closed the channel
			}
		}
	}
}

// commandOverWebSocket runs a command over a WebSocket.
func commandOverWebSocket(ctx context.Context, w http.ResponseWriter, h *http.Request, o Options, run func(context.Context, *Session) metav1.Status) {
	serveWebSocket(w, h, []string{protocolV5, protocolV4}, func(ws *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// A command that writes to a client that does not read ends, too.
		defer context.AfterFunc(ctx, func() { _ = ws.SetDeadline(time.Now().Add(closeTimeout)) })()
		s := &socket{ws: ws, inputs: map[byte]*input{}, halves: ws.Config().Protocol[0] == protocolV5}
		session := &Session{gone: ctx.Done()}
		if o.Stdin {
			session.Stdin = s.input(stdinChannel)
		}
		if o.Stdout {
			session.Stdout = output{s, stdoutChannel}
		}
		if o.Stderr {
			session.Stderr = output{s, stderrChannel}
		}
		if o.TTY {
			session.Resize = sizes(s.input(resizeChannel))
		}
		var receiving sync.WaitGroup
		receiving.Go(func() {
			defer cancel()
			s.receive()
		})
		defer watch(ctx, cancel, s.probe)()
		// An empty message tells the client that the command begins.
		_, _ = output{s, statusChannel}.Write(nil) // a client that is gone ends ctx
		status := run(ctx, session)
		for _, in := range s.inputs {
			in.drop() // as is what the client sends from now on
		}
		session.copying.Wait()
		if ctx.Err() == nil {
			_ = ws.SetDeadline(time.Now().Add(closeTimeout))
		}
		encoded, _ := json.Marshal(status) // a Status always encodes
		_, _ = output{s, statusChannel}.Write(encoded)
		_ = ws.WriteClose(websocketClosed)
		receiving.Wait() // until the client has taken everything and closes
	})
}

// websocketClosed is the status code of a connection that has ended as it should.
const websocketClosed = 1000

// probeEvery is how often a client is asked for a sign of life.
const probeEvery = 10 * time.Second

// watch probes a client until ctx ends, and calls cancel when it is gone. stop returns when
// no probe is under way; ctx has ended, or the connection has a deadline.
func watch(ctx context.Context, cancel context.CancelFunc, probe func() error) (stop func()) {
	var probing sync.WaitGroup
	probing.Go(func() {
		ticker := time.NewTicker(probeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if probe() != nil {
					cancel()
					return
				}
			}
		}
	})
	return func() {
		cancel()
		probing.Wait()
	}
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	body, _ := json.Marshal(metav1.Status{ // a Status always encodes
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

var _ net.Conn = (*websocket.Conn)(nil)
