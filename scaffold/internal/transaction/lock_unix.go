// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package transaction

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the folder for this process, without waiting. It leaves no file, and the
// lock ends with the process. File systems without locks on folders, such as NFS, have
// none.
func lock(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(ErrBusy, f.Close())
	}
	// Explicitly: a child process that is being started has a copy of the file.
	return func() error { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN); return f.Close() }, nil
}
