// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// raw reads and writes a socket without telling the runtime of the system calls.
// They never wait, so there is nothing that it could do meanwhile; but a process
// that was idle would have its monitor woken by the first of them, to look every
// 20 microseconds whether it still lasts.
type raw struct {
	conn    syscall.RawConn
	in, out transfer
}

// transfer is one direction. mu guards it while a call is under way.
type transfer struct {
	mu    sync.Mutex
	step  func(fd uintptr) bool
	bytes []byte
	n     int
	err   error
}

// newRaw returns nil for what is not a socket of the operating system.
func newRaw(c net.Conn) *raw {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	r := &raw{conn: conn}
	r.in.step = func(fd uintptr) bool { return r.in.try(syscall.SYS_READ, fd) }
	r.out.step = func(fd uintptr) bool {
		for len(r.out.bytes) > r.out.n && r.out.err == nil {
			if !r.out.try(syscall.SYS_WRITE, fd) {
				return false
			}
		}
		return true
	}
	return r
}

// try makes one system call; false says that the socket is not ready.
func (t *transfer) try(call, fd uintptr) bool {
	rest := t.bytes[t.n:]
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(len(rest)))
		switch errno {
		case 0:
			t.n += int(n)
			return true
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		}
		t.err = errno
		return true
	}
}

// do moves bytes; wait is what waits until the socket is ready.
func (t *transfer) do(name string, p []byte, wait func(func(uintptr) bool) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes, t.n, t.err = p, 0, nil
	err := wait(t.step)
	t.bytes = nil
	if err == nil && t.err != nil {
		err = os.NewSyscallError(name, t.err)
	}
	return t.n, err
}

func (r *raw) read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.in.do("read", p, r.conn.Read)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (r *raw) write(p []byte) (int, error) { return r.out.do("write", p, r.conn.Write) }
