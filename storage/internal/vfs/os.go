// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"os"
	"path/filepath"
)

// OS returns a directory of the operating system. Its files are readable by
// their owner alone.
func OS(path string) Dir { return &osDir{root: path} }

type osDir struct {
	root  string
	rings rings
}

func (d *osDir) path(name string) string { return filepath.Join(d.root, name) }

func (d *osDir) Open(name string, create bool) (File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(d.path(name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, dir: d}, nil
}

func (d *osDir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d *osDir) Remove(name string) error { return os.Remove(d.path(name)) }

func (d *osDir) List() ([]string, error) {
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

func (d *osDir) Sync() error { return syncDir(d.root) }

func (d *osDir) Close() { d.rings.close() }

type osFile struct {
	*os.File
	dir    *osDir
	direct direct
}

func (f *osFile) Sync() error { return syncData(f.File) }

func (f *osFile) WriteSync(p []byte, offset int64) error {
	if done, err := f.direct.write(f, p, offset); done {
		return err
	}
	if _, err := f.WriteAt(p, offset); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	f.direct.uncache(f)
	return nil
}

func (f *osFile) Close() error {
	f.direct.close(f)
	return f.File.Close()
}
