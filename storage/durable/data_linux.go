// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !portable

package durable

import (
	"os"
	"syscall"
)

// SyncData flushes the contents but not the times of a file, with fdatasync: for a file
// with allocated space this does not write its inode.
func SyncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = syscall.Fdatasync(int(fd)); failed != syscall.EINTR {
				return
			}
		}
	})
	if err == nil && failed != nil {
		err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return err
}
