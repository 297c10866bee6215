// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Size counts files and their lines.
type Size struct{ Files, Lines int }

func (s Size) String() string { return fmt.Sprintf("%d files, %d lines", s.Files, s.Lines) }

// owned counts what the author of a project owns: all that is not generated anew from it,
// and no programs.
func owned(dir string) (Size, error) {
	var size Size
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			switch name {
			case ".git", ".steer", "bin", "dist", "config/crd", "config/rbac", "config/webhook":
				return filepath.SkipDir
			}
			return nil
		}
		if name == "go.sum" || strings.HasPrefix(entry.Name(), "zz_") {
			return nil
		}
		text, err := os.ReadFile(path)
		size.Files++
		size.Lines += bytes.Count(text, []byte("\n"))
		return err
	})
	return size, err
}
