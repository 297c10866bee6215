// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock file at path for this process, without waiting, and returns a
// closer that releases it. It fails with [ErrLocked] if another process has it.
func Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return &lock{f}, nil
}

// lock is a held lock file.
type lock struct{ *os.File }

// Close releases the lock explicitly: closing the file alone would leave it to a child
// process that is being started and has a copy.
func (l *lock) Close() error {
	return errors.Join(unix.Flock(int(l.Fd()), unix.LOCK_UN), l.File.Close())
}

// IsFull reports whether an operation failed for lack of space.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
