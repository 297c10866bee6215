// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package connections_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/steer-dev/steer/internal/connections"
)

// line is a listener whose connections a test makes.
type line struct{ incoming chan net.Conn }

func (l line) Accept() (net.Conn, error) {
	c, ok := <-l.incoming
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l line) Close() error   { close(l.incoming); return nil }
func (l line) Addr() net.Addr { return &net.TCPAddr{} }

// end is the server's end of a connection.
type end struct {
	net.Conn
	from net.Addr
}

func (e end) RemoteAddr() net.Addr { return e.from }

// port is a bounded server: it keeps what it has accepted.
type port struct {
	line
	accepted chan net.Conn
	serving  sync.WaitGroup
}

func serve(t *testing.T, limit int) *port {
	t.Helper()
	p := &port{line: line{make(chan net.Conn)}, accepted: make(chan net.Conn, 10_000)}
	bounded := connections.Bound(p.line, limit)
	p.serving.Go(func() {
		for {
			c, err := bounded.Accept()
			if err != nil {
				close(p.accepted)
				return
			}
			p.accepted <- c
		}
	})
	t.Cleanup(p.stop)
	return p
}

// stop waits until all that was connected is accepted or refused.
func (p *port) stop() {
	if p.incoming != nil {
		_ = p.Close()
		p.serving.Wait()
		p.incoming = nil
	}
}

// connect returns the client's end of a connection.
func (p *port) connect(ip string, number int) net.Conn {
	client, server := net.Pipe()
	p.incoming <- end{server, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1024 + number}}
	return client
}

// isOpen reports whether the server has the connection.
func isOpen(t *testing.T, client net.Conn) bool {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		done <- err
	}()
	if _, err := client.Write(make([]byte, 1)); errors.Is(err, io.ErrClosedPipe) {
		<-done
		return false
	}
	_ = client.Close()
	<-done
	return true
}

func TestOneAddressLeavesConnectionsToTheOthers(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{10, 0} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			most := limit
			if most == 0 {
				most = connections.Default
			}
			p := serve(t, limit)
			var flood, others []net.Conn
			for i := range most + 5 {
				flood = append(flood, p.connect("192.0.2.1", i))
			}
			for i := range most / 2 {
				others = append(others, p.connect(fmt.Sprintf("2001:db8::%x", i+1), i))
			}
			p.stop()
			var servers []net.Conn
			for c := range p.accepted {
				go func() { _, _ = io.Copy(io.Discard, c) }() // until it is closed
				servers = append(servers, c)
			}
			if want := most + most/2; len(servers) != want {
				t.Errorf("the server was given %d connections, want %d", len(servers), want)
			}
			for i, client := range others {
				if !isOpen(t, client) {
					t.Errorf("other address %d is kept out", i)
				}
			}
			// The newest were too many, or make room for others.
			for i, client := range flood {
				if want := i < most-most/2; isOpen(t, client) != want {
					t.Errorf("connection %d of the flood: open is %t, want %t", i, !want, want)
				}
			}
			for _, c := range servers {
				_ = c.Close()
			}
		})
	}
}

func TestConnectionsThatEndMakeRoom(t *testing.T) {
	t.Parallel()
	p := serve(t, 2)
	for i := range 6 { // two at once, and one is closed twice
		p.connect("192.0.2.1", i)
		if c := <-p.accepted; i > 0 {
			_ = c.Close()
			_ = c.Close()
		}
	}
	p.connect("192.0.2.1", 7)
	<-p.accepted
	p.connect("192.0.2.1", 8)
	p.stop()
	if _, ok := <-p.accepted; ok {
		t.Error("there is a third connection")
	}
}

func TestWithoutABoundAListenerIsTheSame(t *testing.T) {
	t.Parallel()
	l := line{}
	if got := connections.Bound(l, -1); got != net.Listener(l) {
		t.Errorf("got %v", got)
	}
}
