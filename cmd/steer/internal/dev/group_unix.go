// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dev

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first of a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to all of a group; a group without processes is no failure.
func signalGroup(first *os.Process, s syscall.Signal) { _ = syscall.Kill(-first.Pid, s) }

// killGroup ends all of a group.
func killGroup(first *os.Process) { signalGroup(first, syscall.SIGKILL) }

// ExitStatus is what a shell would report.
func ExitStatus(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
