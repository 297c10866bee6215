// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// Lock takes the lock file at path for this process, without waiting, and returns a
// closer that releases it. It fails with [ErrLocked] if another process has it.
func Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	if err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped)); err != nil {
		f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "LockFileEx", Path: path, Err: err}
	}
	return f, nil
}

// IsFull reports whether an operation failed for lack of space.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
