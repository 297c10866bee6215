// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !portable

package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk returns a directory, and what fills its disk until free is called; nil
// where nothing may be mounted.
func smallDisk(t *testing.T) (dir string, fill func() (free func())) {
	t.Helper()
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Logf("the disk is never full: mount a tmpfs: %v", err)
		return root, nil
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(root, "ballast")
	return filepath.Join(root, "data"), func() func() {
		f, err := os.Create(ballast)
		if err != nil {
			t.Errorf("fill the disk: %v", err)
			return func() {}
		}
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		return func() {
			f.Close()
			if err := os.Remove(ballast); err != nil {
				t.Error(err)
			}
		}
	}
}
