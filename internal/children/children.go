// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package children starts programs that end with this one, however it ends: a kill -9 of this
// process ends them, and all that they have started.
//
// On Unix a child and what it starts is a process group of its own, and so in the background of
// a terminal: one that reads from the terminal is stopped by it. What leaves the group, as a
// daemon does, goes on. On Windows they are a job; what a child starts before it has become one,
// at once after its start, is not part of it.
package children

import (
	"context"
	"os/exec"
	"syscall"
)

// Start starts a command. It is waited for with [Child.Wait] in place of [exec.Cmd.Wait]; its
// SysProcAttr is that of this package.
func Start(cmd *exec.Cmd) (*Child, error) { return start(cmd) }

// Run starts a command and waits for it. When ctx ends, the command and what it has started are
// sent SIGTERM; on Windows they are killed. The error is that of [exec.Cmd.Wait].
func Run(ctx context.Context, cmd *exec.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := Start(cmd)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { c.Signal(syscall.SIGTERM) })()
	return c.Wait()
}
