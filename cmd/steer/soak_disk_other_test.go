// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || portable

package main

import "testing"

// smallDisk returns a directory on a disk that nothing fills.
func smallDisk(t *testing.T) (dir string, fill func() (free func())) { return t.TempDir(), nil }
