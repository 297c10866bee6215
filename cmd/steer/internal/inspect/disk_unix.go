// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package inspect

import "golang.org/x/sys/unix"

// freeSpace is how many bytes a user can write to the disk of a folder.
func freeSpace(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil //nolint:unconvert // signed on some systems
}
