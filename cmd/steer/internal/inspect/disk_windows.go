// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import "golang.org/x/sys/windows"

// freeSpace is how many bytes a user can write to the disk of a folder.
func freeSpace(dir string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}
