// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package transaction

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"

	"github.com/steer-dev/steer/scaffold/project"
)

// lock takes the folder for this process, without waiting: it opens a file that no
// other process can open meanwhile, and that is removed when it is closed, at the latest
// with the process.
func lock(dir string) (unlock func() error, err error) {
	state := filepath.Join(dir, project.StateDir)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	name, err := windows.UTF16PtrFromString(filepath.Join(state, "lock"))
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, nil, windows.CREATE_ALWAYS, windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: state, Err: err}
	}
	return func() error {
		err := windows.CloseHandle(handle)
		_ = os.Remove(state) // if nothing else is in it
		return err
	}, nil
}
