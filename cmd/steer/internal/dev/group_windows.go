// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"os/exec"
	"syscall"
)

// startGroup starts a command. A console signal goes to all processes of the console, and so
// to the command and to what it started; wait is to be called once, for [exec.Cmd.Wait].
func startGroup(child *exec.Cmd) (wait func() error, err error) { return child.Wait, child.Start() }

// signalGroup ends the command where the signal did not come from the console:
// Windows has no signals between processes.
func signalGroup(first *os.Process, s syscall.Signal) {
	if s != syscall.SIGINT {
		_ = first.Kill() // it may have ended
	}
}

// killGroup does nothing: the command has ended, and what it started is not known.
func killGroup(*os.Process) {}

// ExitStatus is that of the command.
func ExitStatus(exit *exec.ExitError) int { return exit.ExitCode() }
