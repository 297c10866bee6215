// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package journal

import (
	"errors"
	"syscall"
)

// alive reports whether a process is there.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
