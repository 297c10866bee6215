// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
)

// ErrUsage is wrapped by errors about names, flags and files that the caller gave.
// Nothing was changed.
var ErrUsage = errors.New("usage")

// usageError says what to give instead; its text has no prefix.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func (e *usageError) Is(target error) bool { return target == ErrUsage }

// Usagef makes an error that wraps [ErrUsage]; its text has no prefix.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
