// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package probe

import (
	"syscall"
	"time"
)

// processCPU is the CPU time of this process.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
