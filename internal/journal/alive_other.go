// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package journal

import "os"

// alive reports whether a process is there.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
