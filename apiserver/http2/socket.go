// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"net"
	"sync"
)

// Listener wraps the connections of a listener so that what does not fit into one
// TLS record is still one system call, and so that system calls cost the runtime
// less. Without it all works, at a higher price.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &socket{Conn: c, raw: newRaw(c)}, nil
}

// socket is a connection that can hold back what is written to it.
type socket struct {
	net.Conn
	raw *raw // nil where there is none

	// mu is also held by TLS, which answers some records on its own.
	mu   sync.Mutex
	held bool
	back []byte
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if s.raw == nil {
		return s.Conn.Read(p)
	}
	return s.raw.read(p)
}

func (s *socket) put(p []byte) (int, error) {
	if s.raw == nil {
		return s.Conn.Write(p)
	}
	return s.raw.write(p)
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.held {
		s.back = append(s.back, p...)
		s.mu.Unlock()
		return len(p), nil
	}
	s.mu.Unlock()
	return s.put(p)
}

// hold keeps what is written from now on in a buffer.
func (s *socket) hold(buffer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.back = true, buffer
}

// release writes what was held back and returns the buffer.
func (s *socket) release() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	back := s.back
	s.held, s.back = false, nil
	_, err := s.put(back)
	return back, err
}
