// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/steer-dev/steer/scaffold/project"
)

// sourceState sums the files up that a build of the operator can depend on.
type sourceState struct {
	sum  uint64
	took time.Duration
}

// sources looks at the names, sizes and times of the project's Go files, of go.mod and
// of go.sum, at the manifests of the project's own, and at the names of the samples: a kind
// is there once its sample is. Tests, generated files, folders without sources and other
// modules below do not count.
func (l *loop) sources() sourceState {
	began := time.Now()
	sum := fnv.New64a()
	_ = filepath.WalkDir(l.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return filepath.SkipDir // it has just gone, which its folder shows
		case d.IsDir() && path != l.Dir && !hasSources(path, d.Name()):
			return filepath.SkipDir
		case isSource(d.Name()):
			if info, err := d.Info(); err == nil {
				fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
			}
		}
		return nil
	})
	for _, folder := range []string{samplesFolder, project.ExtrasDir} {
		entries, _ := os.ReadDir(filepath.Join(l.Dir, filepath.FromSlash(folder))) // it may not be there
		for _, entry := range entries {
			fmt.Fprintln(sum, entry.Name())
			if info, err := entry.Info(); err == nil && folder == project.ExtrasDir {
				fmt.Fprintln(sum, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return sourceState{sum.Sum64(), time.Since(began)}
}

// isSource reports whether a build can depend on a file of a name.
func isSource(name string) bool {
	return name == "go.mod" || name == "go.sum" || strings.HasSuffix(name, ".go") &&
		!strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated.") && !strings.HasPrefix(name, ".")
}

// hasSources reports whether a folder is one of those that are looked at.
func hasSources(path, name string) bool {
	switch name {
	case "bin", "config", "dist", "docs", "node_modules", "testdata", "vendor":
		return false
	}
	if strings.HasPrefix(name, ".") {
		return false
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err != nil
}
