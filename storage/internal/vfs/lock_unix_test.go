// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vfs

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is being started has copies of all open files until it executes its
// program, including that of the lock.
func TestAReleasedLockIsFreeAlthoughAChildHasItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "LOCK")
	held, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(held.(*lock).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatalf("got error %v, want the lock", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
