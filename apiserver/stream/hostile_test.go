// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/moby/spdystream/spdy"
	"golang.org/x/net/websocket"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
)

// single is a listener with one connection.
type single struct {
	conn   chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (s *single) Accept() (net.Conn, error) {
	select {
	case c := <-s.conn:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *single) Close() error {
	s.close.Do(func() { close(s.closed) })
	return nil
}

func (s *single) Addr() net.Addr { return &net.TCPAddr{} }

// stranger is a client that keeps to no rules, over a connection in memory.
type stranger struct {
	net.Conn
	below  net.Conn     // of a WebSocket, too
	framer *spdy.Framer // of a connection of SPDY
}

// dial connects to a backend within a bubble of synctest. For "spdy" the protocol is that of
// its streams, else it is that of the WebSocket.
func dial(t *testing.T, backend resource.Connecter, upgrade, protocol, query string) *stranger {
	t.Helper()
	ours, theirs := net.Pipe()
	listener := &single{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	listener.conn <- theirs
	ctx, cancel := context.WithCancel(t.Context())
	var handling sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // over a pipe
		handling.Add(1)
		defer handling.Done()
		backend.Connect(ctx, &resource.Request{}, w, r)
	})}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		_ = ours.Close()
		_ = server.Close()
		<-served
		handling.Wait()
	})
	s := &stranger{Conn: ours, below: ours}
	if upgrade == "websocket" {
		config, err := websocket.NewConfig("ws://x/?"+query, "http://x")
		if err != nil {
			t.Fatal(err)
		}
		config.Protocol = []string{protocol}
		ws, err := websocket.NewClient(config, ours)
		if err != nil {
			t.Fatal(err)
		}
		ws.PayloadType = websocket.BinaryFrame
		s.Conn = ws
	} else {
		go func() {
			_, _ = fmt.Fprintf(ours, "POST /?%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\n\r\n", query, protocol)
		}()
		answer, err := http.ReadResponse(bufio.NewReaderSize(ours, 16), nil)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v: %v", answer, err)
		}
	}
	var err error
	if s.framer, err = spdy.NewFramer(s.Conn, s.Conn); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens a stream of SPDY.
func (s *stranger) open(id spdy.StreamId, headers http.Header) error {
	return s.framer.WriteFrame(&spdy.SynStreamFrame{StreamId: id, Headers: headers})
}

// discard reads what the server sends.
func (s *stranger) discard() { go func() { _, _ = io.Copy(io.Discard, s.Conn) }() }

// idle is a command that reads nothing.
func idle(ctx context.Context, _ *resource.Request, _ stream.Options, _ *stream.Session) error {
	<-ctx.Done()
	return ctx.Err()
}

// deaf is the target of a forwarded port that reads nothing.
type deaf struct{ closed chan struct{} }

func (d *deaf) Read([]byte) (int, error)  { <-d.closed; return 0, io.EOF }
func (d *deaf) Write([]byte) (int, error) { <-d.closed; return 0, io.ErrClosedPipe }
func (d *deaf) Close() error              { close(d.closed); return nil }

func deafPorts() stream.PortForward {
	return stream.PortForward{Dial: func(context.Context, *resource.Request, uint16) (io.ReadWriteCloser, error) {
		return &deaf{make(chan struct{})}, nil
	}}
}

// heap is what is in use, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// most bounds the memory of one connection, in bytes, whatever its client sends.
const most = 6 << 20

// frameOf is a frame of data of SPDY, with as much data as there can be, which begins with
// a text.
func frameOf(stream spdy.StreamId, begin string) []byte {
	out := bytes.Repeat([]byte("x"), 1<<24+7)
	binary.BigEndian.PutUint32(out, uint32(stream))
	binary.BigEndian.PutUint32(out[4:], 1<<24-1)
	copy(out[8:], begin)
	return out
}

// fat are headers that take as much memory as they can: a value has a string for each NUL.
func fat(own ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(own); i += 2 {
		h.Set(own[i], own[i+1])
	}
	for i := len(h); i < 16; i++ {
		h.Set(fmt.Sprint("x-", i), strings.Repeat("\x00", 4<<10))
	}
	return h
}

// floods are what strangers send, without an end, until the server takes no more or ends
// the connection.
func floods() map[string]struct {
	backend                  resource.Connecter
	upgrade, protocol, query string
	send                     func(s *stranger) error
} {
	type flood = struct {
		backend                  resource.Connecter
		upgrade, protocol, query string
		send                     func(s *stranger) error
	}
	command, ports := stream.Command{Run: idle}, deafPorts()
	size, input := frameOf(7, "{\"Width"), frameOf(3, "")
	const all = "stdin=true&stdout=true&command=x"
	out := map[string]flood{
		"messages of a WebSocket":    {command, "websocket", "v5.channel.k8s.io", all, messages(0, 1<<20-16)},
		"messages that are too long": {command, "websocket", "v5.channel.k8s.io", all, messages(0, 2<<20)},
		"the size of a terminal over a WebSocket": {command, "websocket", "v5.channel.k8s.io", all + "&tty=true", func(s *stranger) error {
			if _, err := s.Write([]byte("\x04{\"Width")); err != nil {
				return err
			}
			return messages(4, 1<<20-16)(s)
		}},
		"the size of a terminal over SPDY": {command, "spdy", "v4.channel.k8s.io", all + "&tty=true", func(s *stranger) error {
			if err := s.openAll(); err != nil {
				return err
			}
			return s.data(size)
		}},
		"frames of data": {command, "spdy", "v4.channel.k8s.io", all, func(s *stranger) error {
			if err := s.openAll(); err != nil {
				return err
			}
			return s.data(input)
		}},
		"streams of a command": {command, "spdy", "v4.channel.k8s.io", all, streams(func(int) http.Header { return fat("streamtype", "stdin") })},
	}
	for name, how := range map[string][2]string{"SPDY": {"spdy", "portforward.k8s.io"}, "a WebSocket": {"websocket", "SPDY/3.1+portforward.k8s.io"}} {
		out["streams of ports over "+name] = flood{ports, how[0], how[1], "", streams(func(i int) http.Header {
			return fat("streamtype", "data", "port", "7", "requestid", fmt.Sprint(i))
		})}
		out["frames of a port over "+name] = flood{ports, how[0], how[1], "", func(s *stranger) error {
			for i, kind := range []string{"error", "data"} {
				if err := s.open(spdy.StreamId(1+2*i), http.Header{"Streamtype": {kind}, "Port": {"7"}, "Requestid": {"1"}}); err != nil {
					return err
				}
			}
			return s.data(input)
		}}
	}
	return out
}

// messages sends messages of a size to a channel.
func messages(channel byte, size int) func(*stranger) error {
	message := bytes.Repeat([]byte("x"), size)
	message[0] = channel
	return func(s *stranger) error {
		for range 64 {
			if _, err := s.Write(message); err != nil {
				return err
			}
		}
		return nil
	}
}

// openAll opens the streams of a command, that of its input as number 3, and that of the
// size of its terminal as number 7.
func (s *stranger) openAll() error {
	for i, kind := range []string{"error", "stdin", "stdout", "resize"} {
		if err := s.open(spdy.StreamId(1+2*i), http.Header{"Streamtype": {kind}}); err != nil {
			return err
		}
	}
	return nil
}

// data sends a frame of 16 MiB some times.
func (s *stranger) data(frame []byte) error {
	for range 6 {
		for part := range slices.Chunk(frame, 32<<10) {
			if _, err := s.Write(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// streams opens streams without an end.
func streams(headers func(i int) http.Header) func(*stranger) error {
	return func(s *stranger) error {
		for i := range 200 {
			if err := s.open(spdy.StreamId(1+2*i), headers(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestMemoryOfAConnectionIsBounded floods connections of every protocol, and measures what
// of it the process keeps. It is not parallel, so that it measures nothing else.
func TestMemoryOfAConnectionIsBounded(t *testing.T) {
	for name, flood := range floods() {
		for _, reads := range []bool{true, false} {
			if !reads && flood.protocol != "v5.channel.k8s.io" {
				continue // spdystream then waits for a mutex, which no bubble takes for idle
			}
			t.Run(fmt.Sprintf("%s, reading %t", name, reads), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := dial(t, flood.backend, flood.upgrade, flood.protocol, flood.query)
					synctest.Wait()
					before := heap()
					if reads {
						s.discard()
					}
					sent := make(chan error, 1)
					go func() { sent <- flood.send(s) }()
					synctest.Wait()
					kept := heap() - before
					select {
					case err := <-sent:
						t.Logf("the flood has ended: %v", err)
					default:
						t.Log("the server takes no more")
					}
					t.Logf("%d KiB", kept>>10)
					if kept > most {
						t.Errorf("the connection keeps %d bytes, more than %d", kept, most)
					}
				})
			})
		}
	}
}

// TestCommandThatDoesNotReadEndsWithItsClient is about what a client has sent before it
// went, more than is read ahead: its end stands behind that.
func TestCommandThatDoesNotReadEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for name, flood := range floods() {
		if !strings.HasPrefix(name, "messages of") && !strings.HasPrefix(name, "frames of") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				backend := flood.backend
				if _, ok := backend.(stream.Command); ok {
					backend = stream.Command{Run: func(ctx context.Context, r *resource.Request, o stream.Options, s *stream.Session) error {
						err := idle(ctx, r, o, s)
						ended <- err
						return err
					}}
				} else {
					to := &deaf{make(chan struct{})}
					backend = stream.PortForward{Dial: func(ctx context.Context, _ *resource.Request, _ uint16) (io.ReadWriteCloser, error) {
						context.AfterFunc(ctx, func() { ended <- ctx.Err() })
						return to, nil
					}}
				}
				// The connection ends for who writes to it, while what was sent is still there.
				s := dial(t, backend, flood.upgrade, flood.protocol, flood.query)
				s.discard()
				go func() { _ = flood.send(s) }()
				synctest.Wait()
				select {
				case err := <-ended:
					t.Fatalf("ended while the client is there: %v", err)
				default:
				}
				_ = s.below.Close()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}
