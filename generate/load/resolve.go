// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import "context"

// Listed is a package as it lies on disk, before anything of it is parsed.
type Listed struct {
	Path  string   // import path
	Dir   string   // absolute
	Files []string // absolute paths of the files that the build selects, sorted
	Std   bool     // part of the standard library

	module *module // set by the fast resolver
}

// Resolver finds packages. There are two: [Fast] reads go.mod, go.work, vendor
// directories and the module cache itself, [GoList] asks the go command. They
// agree; the fast one refuses with [ErrFallback] what it does not understand.
type Resolver interface {
	// Roots lists the packages that the patterns of the command line name:
	// directories ("./api/v1"), trees ("./...", which cross into nested modules)
	// or import paths. No pattern is the package in the working directory.
	Roots(ctx context.Context, patterns []string) ([]*Listed, error)
	// Import finds what an import of path means inside from.
	Import(path string, from *Listed) (*Listed, error)
}

// Build is what decides which files belong to a package.
type Build struct {
	Dir    string   // where patterns start; default: the working directory
	Tags   []string // besides those that hold anyway
	GOOS   string   // default: the environment's, then this program's
	GOARCH string
}
