// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/spdystream"
	"golang.org/x/net/websocket"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
)

// echoes is a listener that sends back what it is sent.
func echoes(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// forwards are the ways in which clients of forwarded ports connect.
func forwards() map[string]func(t *testing.T, host, path string) (*spdystream.Connection, io.Closer) {
	return map[string]func(t *testing.T, host, path string) (*spdystream.Connection, io.Closer){
		"spdy": func(t *testing.T, host, path string) (*spdystream.Connection, io.Closer) {
			spdy := overSPDY(t, host, path+"portforward", "portforward.k8s.io")
			return spdy, spdy
		},
		"websocket": func(t *testing.T, host, path string) (*spdystream.Connection, io.Closer) {
			config, err := websocket.NewConfig("ws://"+host+path+"portforward", "http://"+host)
			if err != nil {
				t.Fatal(err)
			}
			config.Protocol = []string{"SPDY/3.1+portforward.k8s.io"}
			ws, err := config.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ws.PayloadType = websocket.BinaryFrame
			spdy, err := spdystream.NewConnection(ws, false)
			if err != nil {
				t.Fatal(err)
			}
			go spdy.Serve(spdystream.NoOpStreamHandler)
			t.Cleanup(func() { _ = ws.Close() })
			return spdy, ws
		},
	}
}

func TestPortForwardCarriesManyConnections(t *testing.T) {
	t.Parallel()
	address := echoes(t)
	_, host, path := serve(t, stream.PortForward{
		Dial: func(ctx context.Context, _ *resource.Request, port uint16) (io.ReadWriteCloser, error) {
			if port != 7 {
				return nil, errors.New("nothing listens there")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
	}.Subresource())
	for name, connect := range forwards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spdy, _ := connect(t, host, path)
			for i := range 20 {
				id := fmt.Sprint(i)
				failure := open(t, spdy, "streamType", "error", "port", "7", "requestID", id)
				data := open(t, spdy, "streamType", "data", "port", "7", "requestID", id)
				_ = failure.Close()
				text := strings.Repeat(id, 5000)
				go func() {
					_, _ = io.WriteString(data, text)
					_ = data.Close()
				}()
				got := make([]byte, len(text))
				if _, err := io.ReadFull(data, got); err != nil || string(got) != text {
					t.Fatalf("connection %d: %d bytes: %v", i, len(got), err)
				}
				if said := everything(t, failure); said != "" {
					t.Errorf("connection %d: %s", i, said)
				}
			}
			failure := open(t, spdy, "streamType", "error", "port", "8", "requestID", "no")
			open(t, spdy, "streamType", "data", "port", "8", "requestID", "no")
			if said := everything(t, failure); said != "error forwarding port 8: nothing listens there" {
				t.Errorf("error %q", said)
			}
		})
	}
}

// watched is a connection that says when it is closed.
type watched struct {
	net.Conn
	closed func()
}

func (w watched) Close() error {
	w.closed()
	return w.Conn.Close()
}

func TestPortForwardClosesTheConnectionsOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	address := echoes(t)
	for name, connect := range forwards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{})
			_, host, path := serve(t, stream.PortForward{
				Dial: func(ctx context.Context, _ *resource.Request, _ uint16) (io.ReadWriteCloser, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
					return watched{conn, sync.OnceFunc(func() { close(closed) })}, err
				},
			}.Subresource())
			spdy, client := connect(t, host, path)
			open(t, spdy, "streamType", "error", "port", "7", "requestID", "1")
			data := open(t, spdy, "streamType", "data", "port", "7", "requestID", "1")
			if _, err := io.WriteString(data, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(data, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			_ = client.Close()
			select {
			case <-closed:
			case <-time.After(limit):
				t.Fatal("the connection is still open")
			}
		})
	}
}
