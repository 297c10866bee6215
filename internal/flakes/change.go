// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// change is the files of a repository that differ from a commit, by their absolute paths; those
// that git does not know yet are among them, and those that are gone.
type change []string

// changesSince asks git.
func changesSince(ctx context.Context, folder, commit string) (change, error) {
	top, err := output(ctx, folder, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	root := strings.TrimSpace(string(top))
	differing, err := output(ctx, root, "git", "diff", "--name-only", "-z", "--no-renames", commit, "--")
	if err != nil {
		return nil, fmt.Errorf("%w\nname a commit that this clone has; one with a short history has few", err)
	}
	unknown, err := output(ctx, root, "git", "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var c change
	for name := range strings.SplitSeq(string(differing)+string(unknown), "\x00") {
		if name != "" {
			c = append(c, filepath.Join(root, filepath.FromSlash(name)))
		}
	}
	return c, nil
}

// reach is how a change concerns the tests of a package.
type reach int

const (
	notReached reach = iota
	// reachedByDependency: something that the test binary links has changed.
	reachedByDependency
	// reachedItself: a file of the package or its test data has changed.
	reachedItself
)

// reaches reports how a change concerns the tests of a package: by its Go files and embedded
// files, by those of what it links, by its folder testdata, by the requirements of the module.
// Files that a test reads from other folders are not known.
func (c change) reaches(p *testedPackage, module string) reach {
	r := notReached
	for _, file := range c {
		dir, base := filepath.Split(file)
		dir = filepath.Clean(dir)
		switch {
		case dir == p.dir && strings.HasSuffix(base, ".go"), strings.HasPrefix(file, filepath.Join(p.dir, "testdata")+string(filepath.Separator)):
			return reachedItself
		case dir == module && (base == "go.mod" || base == "go.sum"), p.inputs[file]:
			r = reachedByDependency
		case p.folders[dir] && strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go"): // gone, perhaps
			r = reachedByDependency
		}
	}
	return r
}
