// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"os"
	"path/filepath"

	"github.com/steer-dev/steer/storage/durable"
)

// OS returns a directory of the operating system. Its files are readable by
// their owner alone.
func OS(path string) Dir { return osDir{root: path} }

type osDir struct{ root string }

func (d osDir) path(name string) string { return filepath.Join(d.root, name) }

func (d osDir) Open(name string, create bool) (File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(d.path(name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d osDir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d osDir) Remove(name string) error { return os.Remove(d.path(name)) }

func (d osDir) List() ([]string, error) {
	entries, err := os.ReadDir(d.root)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d osDir) Sync() error { return durable.SyncDir(d.root) }

type osFile struct{ *os.File }

// Sync implements [File].
func (f osFile) Sync() error { return durable.SyncData(f.File) }
