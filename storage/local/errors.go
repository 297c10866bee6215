// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
)

// ErrNotEmpty: a snapshot can only be restored into a new directory.
var ErrNotEmpty = errors.New("the directory has a store already; choose an empty one")

// InUseError reports that another process has the store open.
type InUseError struct {
	Dir string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by another process; stop it or choose another directory", e.Dir)
}

// FormatError reports a data directory with an unsupported format.
type FormatError struct {
	// Found is the version of the directory, 0 if it has none.
	Found int
	// Known is the newest version that this program supports.
	Known int
}

func (e *FormatError) Error() string {
	if e.Found == 0 {
		return "the directory holds files of a store but no valid FORMAT file; it is not complete: restore a snapshot into a new one"
	}
	return fmt.Sprintf("the directory has format version %d, this program knows versions up to %d; use a newer program", e.Found, e.Known)
}
