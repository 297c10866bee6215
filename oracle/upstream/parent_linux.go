// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !portable

package upstream

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill the child when this process dies.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
