// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package giveback

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0 // it cannot fail; a program that seems idle gives back early
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
