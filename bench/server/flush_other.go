// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || portable

package server

import "os"

// flush is what a log does to have its bytes on disk.
func flush(file *os.File) error { return file.Sync() }
