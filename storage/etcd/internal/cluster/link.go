// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// Link is the network on the way to a process.
type Link struct {
	network, target string // where the process listens
	listener        net.Listener

	mu      sync.Mutex
	changed chan struct{} // closed when what follows changes
	cut     func(from string) bool
	frozen  bool
	delay   time.Duration
	conns   map[*conn]struct{}
}

// conn is a connection over a link.
type conn struct {
	client, server net.Conn
	from           string // the member of etcd that opened it, by its id; empty: another program
}

// newLink returns a link to a process, whose address may be set later.
func newLink(network, target string) (*Link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	link := &Link{network: network, target: target, listener: l, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	go link.accept()
	return link, nil
}

// Address is where the link begins.
func (l *Link) Address() string { return l.listener.Addr().String() }

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(client)
	}
}

// serverFrom begins the line in which a member of etcd names itself to another.
const serverFrom = "X-Server-From: "

// carry carries a connection. What a client sends first says which member it is.
func (l *Link) carry(client net.Conn) {
	c := &conn{client: client}
	defer func() { _ = client.Close() }()
	head := make([]byte, 4<<10)
	n, err := client.Read(head)
	if err != nil {
		return
	}
	head = head[:n]
	if _, line, ok := bytes.Cut(head, []byte(serverFrom)); ok {
		id, _, _ := bytes.Cut(line, []byte("\r"))
		c.from = string(id)
	}
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	if c.server, err = net.Dial(l.network, target); err != nil {
		return
	}
	defer func() { _ = c.server.Close() }()
	l.mu.Lock()
	if l.cut != nil && l.cut(c.from) {
		l.mu.Unlock()
		return
	}
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	if l.pass() {
		if _, err := c.server.Write(head); err == nil {
			var both sync.WaitGroup
			both.Go(func() { l.copy(c.server, client) })
			both.Go(func() { l.copy(client, c.server) })
			both.Wait()
		}
	}
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
}

// copy copies until either side is closed, which closes both.
func (l *Link) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && l.pass() {
			_, err2 := to.Write(buffer[:n])
			if err == nil {
				err = err2
			}
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// pass waits while the link is frozen, and for its delay.
func (l *Link) pass() bool {
	for {
		l.mu.Lock()
		frozen, delay, changed := l.frozen, l.delay, l.changed
		l.mu.Unlock()
		if !frozen {
			time.Sleep(delay)
			return true
		}
		<-changed
	}
}

// set changes the state of the link, and ends the connections that it does not have then.
func (l *Link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
	for c := range l.conns {
		if l.cut != nil && l.cut(c.from) {
			_ = c.client.Close()
			_ = c.server.Close()
		}
	}
}

// Cut ends all connections, and refuses new ones until Heal.
func (l *Link) Cut() { l.CutFrom(func(string) bool { return true }) }

// CutFrom is Cut for what certain members of etcd have opened, by their ids.
func (l *Link) CutFrom(from func(string) bool) { l.set(func() { l.cut = from }) }

// Freeze keeps the connections, and nothing arrives until Heal.
func (l *Link) Freeze() { l.set(func() { l.frozen = true }) }

// Slow delays what is sent.
func (l *Link) Slow(by time.Duration) { l.set(func() { l.delay = by }) }

// Heal ends all of these.
func (l *Link) Heal() { l.set(func() { l.cut, l.frozen, l.delay = nil, false, 0 }) }

// lead has new connections go to another address.
func (l *Link) lead(target string) { l.set(func() { l.target = target }) }

func (l *Link) close() {
	_ = l.listener.Close()
	l.set(func() { l.cut, l.frozen = func(string) bool { return true }, false })
}

// Balancer gives each connection to the next server that accepts it, as a TCP load balancer
// does that looks at connections alone.
type Balancer struct {
	listener net.Listener

	mu      sync.Mutex
	targets []string
	next    int
}

func newBalancer() (*Balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Balancer{listener: l}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go b.carry(client)
		}
	}()
	return b, nil
}

// Address is where clients connect.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Lead replaces the servers.
func (b *Balancer) Lead(targets ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = targets
}

func (b *Balancer) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	b.mu.Lock()
	targets, first := b.targets, b.next
	b.next++
	b.mu.Unlock()
	for i := range targets {
		server, err := net.DialTimeout("tcp", targets[(first+i)%len(targets)], time.Second)
		if err != nil {
			continue
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(client, server)
		_ = server.Close()
		return
	}
}
