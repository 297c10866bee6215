// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connections bounds the connections of a server, and shares them among the addresses
// that clients have.
package connections

import (
	"cmp"
	"net"
	"slices"
	"sync"
)

// Default is how many connections a port of an operator has at most where no option says it. One
// of TLS costs about 40 KiB.
const Default = 1000

// Bound returns a listener of which at most limit connections are open at once; 0 means
// [Default], and below that there is no bound. Of one too many the newest of the address that has
// the most is closed, which may be the one that comes: so one address never keeps the others out,
// and connections that were there before a flood go on. Connections are accepted at once; the
// listener waits for none to end.
func Bound(l net.Listener, limit int) net.Listener {
	limit = cmp.Or(limit, Default)
	if limit < 0 {
		return l
	}
	return &listener{Listener: l, limit: limit, open: map[string][]*conn{}}
}

// listener is a [net.Listener] that knows its connections.
type listener struct {
	net.Listener
	limit int

	mu    sync.Mutex
	count int
	open  map[string][]*conn // by address, the oldest first
}

// conn is a connection until it is closed.
type conn struct {
	net.Conn
	of      *listener
	address string
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{accepted, l, addressOf(accepted)}
		if left := l.add(c); left != nil {
			_ = left.Close() // its client sees the end
			if left == c {
				continue
			}
		}
		return c, nil
	}
}

// add counts a connection, and returns one that has to be closed for it: the new one itself, that
// of another address, or nil.
func (l *listener) add(c *conn) (left *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.open[c.address] = append(l.open[c.address], c)
	if l.count <= l.limit {
		return nil
	}
	most := l.open[c.address]
	for _, open := range l.open {
		if len(open) > len(most) {
			most = open
		}
	}
	left = most[len(most)-1]
	l.drop(left)
	return left
}

// drop counts a connection no longer; mu is held. One that is not counted is none.
func (l *listener) drop(c *conn) {
	open := l.open[c.address]
	i := slices.Index(open, c)
	if i < 0 {
		return
	}
	l.count--
	if open = slices.Delete(open, i, i+1); len(open) == 0 {
		delete(l.open, c.address)
		return
	}
	l.open[c.address] = open
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.drop(c)
	return err
}

// addressOf returns the address of a client without its port.
func addressOf(c net.Conn) string {
	address := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
