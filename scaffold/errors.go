// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"strings"
)

// ExistError lists files that a command would overwrite or remove although they hold
// work that is not its own. Nothing was changed.
type ExistError struct {
	Paths  []string // relative to the project
	Reason string   // what is about the files, such as "exist"
}

func (e *ExistError) Error() string {
	return fmt.Sprintf("%s: %s; --force does it all the same", e.Reason, strings.Join(e.Paths, ", "))
}
