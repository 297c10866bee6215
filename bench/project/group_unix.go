// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package project

import (
	"os/exec"
	"syscall"
)

// asGroup makes a command and its children a process group, which is interrupted as a
// terminal does it.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
