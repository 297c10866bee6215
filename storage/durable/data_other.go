// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || portable

package durable

import "os"

// SyncData flushes a file: with F_FULLFSYNC on darwin, FlushFileBuffers on Windows
// and fsync elsewhere.
func SyncData(f *os.File) error { return f.Sync() }
