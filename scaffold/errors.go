// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUsage is wrapped by errors about names, flags and files that the caller gave.
// Nothing was changed.
var ErrUsage = errors.New("usage")

// usageError says what to give instead; its text has no prefix.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func (e *usageError) Is(target error) bool { return target == ErrUsage }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// ExistError lists files that a command would overwrite or remove although they hold
// work that is not its own. Nothing was changed.
type ExistError struct {
	Paths  []string // relative to the project
	Reason string   // what is about the files, such as "exist"
}

func (e *ExistError) Error() string {
	return fmt.Sprintf("%s: %s; --force does it all the same", e.Reason, strings.Join(e.Paths, ", "))
}
