// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import "errors"

var (
	// ErrFallback: the fast resolver met something that only the go command
	// understands; load again with [GoList].
	ErrFallback = errors.New("load: ask the go command")
	// ErrNoFiles: the directory holds no Go file that the build selects.
	ErrNoFiles = errors.New("no Go files to build (check the build tags)")
)
