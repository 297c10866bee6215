// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !portable

package envtest

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitParent returns a channel that is closed when the process that started
// this one has ended, however it did. The signal that Linux sends on request is
// no use: it comes when the thread that started the child ends.
func awaitParent() (<-chan struct{}, error) {
	parent, err := unix.PidfdOpen(os.Getppid(), 0)
	gone := make(chan struct{})
	if errors.Is(err, unix.ESRCH) {
		close(gone)
		return gone, nil
	}
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(gone)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(parent), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return gone, nil
}
