// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package vfs

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring carries out one write at a time with the kernel's asynchronous I/O
// (io_submit(2)). Its end is told through an eventfd, so that a goroutine waits
// for it as for the network, and no thread does.
type ring struct {
	context uintptr
	event   *os.File
	conn    syscall.RawConn
	buffer  []byte

	// The call under way.
	call      control
	calls     [1]*control
	result    completion
	submitted bool
	err       error
	step      func(uintptr) bool
	trust     trust
}

// trust tells whether submissions are known not to wait. One that takes longer than
// waited did not only submit: the disk had written by the time that the kernel
// looked whether it had, so that it flushed on the spot. The runtime has to know of
// a call that may wait, or what else there is to do would wait with it; but being
// told wakes its monitor, which costs more than the call. So it is told until
// trustAfter submissions in a row did not wait, and again once one does.
type trust struct{ row int }

const (
	waited     = 500 * time.Microsecond
	trustAfter = 8
)

func (t *trust) earned() bool { return t.row >= trustAfter }

// note tells how long a submission took.
func (t *trust) note(took time.Duration) {
	if t.row++; took > waited {
		t.row = 0
	}
}

// control is struct iocb, as a little-endian kernel of 64 bits lays it out.
type control struct {
	_       uint64 // what the completion repeats
	_       uint32
	rwFlags uint32
	opcode  uint16
	_       int16
	fd      uint32
	buf     uint64
	nbytes  uint64
	offset  int64
	_       uint64
	flags   uint32
	eventfd uint32
}

// completion is struct io_event.
type completion struct {
	data, call uint64
	res, res2  int64
}

const (
	commandWrite = 1 // IOCB_CMD_PWRITE
	flagEvent    = 1 // IOCB_FLAG_RESFD
)

func newRing() (*ring, error) {
	r := &ring{}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&r.context)), 0); errno != 0 {
		return nil, errno
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		r.close()
		return nil, err
	}
	r.event = os.NewFile(uintptr(fd), "eventfd")
	if r.conn, err = r.event.SyscallConn(); err != nil {
		r.close()
		return nil, err
	}
	r.call.flags, r.call.eventfd = flagEvent, uint32(fd)
	r.calls[0] = &r.call
	r.step = r.advance
	return r, nil
}

// take returns n bytes that are aligned to blocks, valid until the next call.
func (r *ring) take(n int) []byte {
	if n > len(r.buffer) {
		b := make([]byte, max(n, 4*blockSize)+blockSize)
		past := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % blockSize)
		r.buffer = b[(blockSize-past)%blockSize:]
	}
	return r.buffer[:n]
}

// write writes blocks durably (RWF_DSYNC), and returns when they are, or could not
// be without waiting for something else (RWF_NOWAIT; EAGAIN or a short write).
func (r *ring) write(fd uintptr, b []byte, offset int64) (int, error) {
	r.call.rwFlags, r.call.opcode, r.call.fd = unix.RWF_DSYNC|unix.RWF_NOWAIT, commandWrite, uint32(fd)
	r.call.buf, r.call.nbytes, r.call.offset = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint64(len(b)), offset
	r.submitted, r.err = false, nil
	err := r.conn.Read(r.step)
	runtime.KeepAlive(b)
	switch {
	case err != nil:
		return 0, err
	case r.err != nil:
		return 0, r.err
	case r.result.res < 0:
		return 0, syscall.Errno(-r.result.res)
	}
	return int(r.result.res), nil
}

// submit hands the call to the kernel.
func (r *ring) submit() (errno syscall.Errno) {
	began := time.Now()
	if r.trust.earned() {
		_, _, errno = syscall.RawSyscall(unix.SYS_IO_SUBMIT, r.context, 1, uintptr(unsafe.Pointer(&r.calls)))
	} else {
		_, _, errno = syscall.Syscall(unix.SYS_IO_SUBMIT, r.context, 1, uintptr(unsafe.Pointer(&r.calls)))
	}
	r.trust.note(time.Since(began))
	return errno
}

// advance submits the call when it is first called, and then tells whether it is
// done.
func (r *ring) advance(uintptr) bool {
	if !r.submitted {
		r.submitted = true
		if errno := r.submit(); errno != 0 {
			r.err = errno
			return true
		}
	}
	var now syscall.Timespec
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_IO_GETEVENTS, r.context, 0, 1, uintptr(unsafe.Pointer(&r.result)), uintptr(unsafe.Pointer(&now)), 0)
		switch errno {
		case 0:
			return n == 1
		case syscall.EINTR:
			continue // the eventfd may have told already, and tells once
		}
		r.err = errno
		return true
	}
}

// close waits for what is under way.
func (r *ring) close() {
	_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, r.context, 0, 0) // fails only for what is none
	if r.event != nil {
		r.event.Close()
	}
}

// rings keeps a ring from one file for the next: the kernel takes its time to
// remove one. Its zero value is ready.
type rings struct {
	mu     sync.Mutex
	spare  *ring
	closed bool
}

func (rs *rings) get() (*ring, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, errors.ErrUnsupported
	}
	if r := rs.spare; r != nil {
		rs.spare = nil
		return r, nil
	}
	return newRing()
}

func (rs *rings) put(r *ring) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed || rs.spare != nil {
		r.close()
		return
	}
	rs.spare = r
}

func (rs *rings) close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed = true; rs.spare != nil {
		rs.spare.close()
		rs.spare = nil
	}
}
