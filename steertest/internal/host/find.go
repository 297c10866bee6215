// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host is what a test has around the operator under test: the files of its module, and
// its process as the control plane sees it, with its writes, its webhooks and its end.
package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Find returns where a path of the module is. Tests run in the folder of their
// package, while config/ stands in a folder above: a relative path is looked for
// in the folder of the test, then in its parents up to the one with go.mod.
func Find(path string) (string, error) {
	if filepath.IsAbs(path) {
		_, err := os.Stat(path)
		return path, err
	}
	first, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := first; ; dir = filepath.Dir(dir) {
		full := filepath.Join(dir, path)
		if _, err := os.Stat(full); err == nil {
			return full, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s: %w in %s and its parents up to %s: "+
				"name it relative to one of them; if it is generated, run `steer generate` first", path, fs.ErrNotExist, first, dir)
		}
	}
}

// FindAll is [Find] for several paths.
func FindAll(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if out[i], err = Find(path); err != nil {
			return nil, err
		}
	}
	return out, nil
}
