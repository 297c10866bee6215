// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable creates files and directories that survive a loss of power once a
// call has returned, names included. It is a package of its own because the log of a
// store, the keys of a control plane and the files of the command line share it and
// nothing else.
package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MkdirAll creates a directory and its parents, durably. One that exists is made
// durable as well: the process that created it may have been killed before.
func MkdirAll(path string, mode fs.FileMode) error {
	return mkdirAll(filepath.Clean(path), mode, SyncDir)
}

func mkdirAll(path string, mode fs.FileMode, sync func(string) error) error {
	parent := filepath.Dir(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: path, Err: errors.New("a file has this name")}
	case err == nil:
		// A process that cannot read the parent has not created the directory.
		if err := sync(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := mkdirAll(parent, mode, sync); err != nil {
		return err
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return sync(parent)
}

// WriteFile writes a file as [Replace] does. A file that has the contents already keeps
// its modification time.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return errors.Join(os.Chmod(path, mode), SyncDir(filepath.Dir(path)))
	}
	return Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace writes a file so that readers, also after a crash, see the old one or the new
// one and never a part. When it returns, the new one is durable. If write fails, the
// old one stays. A crash may leave a temporary file whose name begins with a dot and
// that of the file.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // the first error is reported
		}
	}()
	err = errors.Join(write(temp), temp.Chmod(mode))
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}
