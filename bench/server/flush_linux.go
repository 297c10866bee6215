// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !portable

package server

import (
	"os"
	"syscall"
)

// flush is what a log does to have its bytes on disk.
func flush(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
