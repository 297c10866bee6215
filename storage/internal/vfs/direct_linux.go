// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// blockSize is what direct writes are aligned to: no disk has larger sectors.
	blockSize = 4 << 10
	// maxDirect bounds what is written directly.
	maxDirect = 512 << 10
	// mostMissed is how often in a row the kernel may say that a direct write would
	// have to wait before the file is written through the cache for good.
	mostMissed = 8
)

// direct makes the end of a file durable without the page cache, and without a
// thread that waits for the disk: a thread in a system call keeps the runtime's
// monitor awake, which costs more than the write. It tries; whatever it cannot do
// at once is done through the cache.
type direct struct {
	tried  bool
	file   *os.File // nil when direct writes are not possible
	fd     uintptr
	ring   *ring
	missed int
	// tail are the bytes of the last block before end, where the next write is
	// expected.
	tail []byte
	end  int64
}

// write writes p at an offset durably. done says that it did, or failed for good;
// otherwise nothing is known of the space that p is for.
func (d *direct) write(f *osFile, p []byte, offset int64) (done bool, err error) {
	if !d.open(f) || len(p) > maxDirect || !d.find(f, offset) {
		d.end = -1
		return false, nil
	}
	start := offset - int64(len(d.tail))
	size := len(d.tail) + len(p)
	b := d.ring.take((size + blockSize - 1) / blockSize * blockSize)
	copy(b[copy(b, d.tail):], p)
	clear(b[size:])
	d.tail, d.end = append(d.tail[:0], b[size/blockSize*blockSize:size]...), offset+int64(len(p))

	n, err := d.ring.write(d.fd, b, start)
	switch {
	case err == nil && n == len(b):
		d.missed = 0
		return true, nil
	case err == nil, errors.Is(err, unix.EAGAIN):
		if d.missed++; d.missed == mostMissed {
			d.close(f)
		}
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		d.close(f) // this file system cannot
	default:
		return true, &os.PathError{Op: "write", Path: f.Name(), Err: err}
	}
	return false, nil
}

// open tells whether direct writes are possible.
func (d *direct) open(f *osFile) bool {
	if d.tried {
		return d.file != nil
	}
	d.tried, d.end = true, -1
	var err error
	if d.ring, err = f.dir.rings.get(); err != nil {
		return false
	}
	if d.file, err = os.OpenFile(f.Name(), os.O_WRONLY|unix.O_DIRECT, 0); err != nil {
		d.close(f)
		return false
	}
	d.fd = d.file.Fd()
	return true
}

// find learns what is before the offset in its block.
func (d *direct) find(f *osFile, offset int64) bool {
	if d.end == offset {
		return true
	}
	d.tail = append(d.tail[:0], make([]byte, offset%blockSize)...)
	_, err := f.ReadAt(d.tail, offset-int64(len(d.tail)))
	d.uncache(f)
	return err == nil
}

// uncache makes the page cache forget what is on the disk: a direct write beneath
// it would have to wait for that.
func (d *direct) uncache(f *osFile) {
	if d.file != nil {
		_ = unix.Fadvise(int(d.fd), 0, 0, unix.FADV_DONTNEED) // else the next write goes through the cache
	}
}

// close gives back what direct writes need.
func (d *direct) close(f *osFile) {
	if d.file != nil {
		d.file.Close()
	}
	if d.ring != nil {
		f.dir.rings.put(d.ring)
	}
	d.file, d.ring = nil, nil
}
