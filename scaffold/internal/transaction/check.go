// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package transaction

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errStrange: a journal has what no command writes. It may have come with the repository.
var errStrange = errors.New("no command wrote this journal")

// check fails unless a journal changes files of the project alone, none of them through a link
// and none in .git.
func (r *record) check(root *os.Root) error {
	paths := r.Dirs
	for _, u := range r.Files {
		paths = append(paths[:len(paths):len(paths)], u.Path)
		if u.Before == "" {
			continue
		}
		if strings.ContainsAny(u.Before, `/\`) || !filepath.IsLocal(u.Before) || u.Before == "." || u.Mode.Perm() != u.Mode {
			return fmt.Errorf("%w: it restores %q from %q with mode %v", errStrange, u.Path, u.Before, u.Mode)
		}
		if err := checkPath(root, state(u.Before)); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := checkPath(root, filepath.FromSlash(path)); err != nil {
			return err
		}
	}
	return nil
}

// checkPath follows a path downwards. Names that differ may be those of one folder, so that
// what they lead to is compared.
func checkPath(root *os.Root, path string) error {
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." {
		return fmt.Errorf("%w: %q is no file of the project", errStrange, path)
	}
	const git = ".git"
	protected, _ := root.Lstat(git) // there may be none
	for end, c := range path + string(filepath.Separator) {
		if c != filepath.Separator {
			continue
		}
		info, err := root.Lstat(path[:end])
		switch {
		case strings.EqualFold(path[:end], git), err == nil && protected != nil && os.SameFile(info, protected):
			return fmt.Errorf("%w: it changes %q", errStrange, path)
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("%w: %w", errStrange, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%w: %q leads through a link", errStrange, path)
		case end < len(path) && !info.IsDir():
			return fmt.Errorf("%w: %q leads through a file", errStrange, path)
		}
	}
	return nil
}
