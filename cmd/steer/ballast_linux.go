// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// ballastBytes makes the collector, which runs when the heap has grown by half,
// run every 16 MB and not every 50 requests as long as the heap is small.
const ballastBytes = 32 << 20

// ballast returns memory that counts as live and takes none: nobody touches it.
func ballast() []byte {
	out := make([]byte, ballastBytes)
	// The allocator may have cleared, and so touched, it. Giving that back cannot
	// lose anything; where it fails, the memory stays.
	_ = syscall.Madvise(out, syscall.MADV_DONTNEED)
	return out
}
