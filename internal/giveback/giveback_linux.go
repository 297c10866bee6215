// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	"golang.org/x/sys/unix"
)

// unmapExecutable takes the clean pages of the executable out of the page table.
func unmapExecutable() error {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	mappings, err := executable(smaps, reflect.ValueOf(Now).Pointer())
	for _, m := range mappings {
		// Nothing can be lost: the next access maps the page of the file again. The
		// system call is made directly because the function of package unix wants a
		// slice, and a slice of code is none that Go knows of.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			err = errors.Join(err, fmt.Errorf("give back %x-%x: %w", m.start, m.end, errno))
		}
	}
	return err
}
