// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package up

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// runSibling makes this process the program, with the arguments of this one: whatever is done
// to the process is done to the program, kill -9 included. It returns only if that fails.
func runSibling(_ context.Context, args []string, _ time.Duration) error {
	path, err := findSibling()
	if err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, append([]string{path}, args...), os.Environ())) // a program of ours, with the arguments of the user
}
