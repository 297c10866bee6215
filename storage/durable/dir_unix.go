// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package durable

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir makes the names in a directory durable. File systems that cannot sync a
// directory return an error for an invalid or unsupported call; it is ignored.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
