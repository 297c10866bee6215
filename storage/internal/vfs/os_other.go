// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vfs

import "os"

func syncData(f *os.File) error { return f.Sync() }
