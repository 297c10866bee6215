// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dev

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup makes a command the first of a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// startGroup starts a command with [ownGroup], which is killed with all of its group when this
// process ends, however it does: a shell holds the end of a pipe of this process until then.
// wait is to be called once, for [exec.Cmd.Wait].
func startGroup(child *exec.Cmd) (wait func() error, err error) {
	child.SysProcAttr = ownGroup()
	if err := child.Start(); err != nil {
		return nil, err
	}
	guard := exec.Command("sh", "-c", "read -r line; kill -s KILL -- -"+strconv.Itoa(child.Process.Pid)) //nolint:gosec // the number of a process
	guard.SysProcAttr = ownGroup()
	held, err := guard.StdinPipe()
	if err == nil {
		err = guard.Start()
	}
	if err != nil {
		killGroup(child.Process)
		return nil, errors.Join(err, child.Wait())
	}
	return func() error {
		err := child.Wait()
		_ = guard.Process.Kill() // before the pipe ends
		_ = guard.Wait()         // it was killed
		_ = held.Close()         // Wait has closed it
		return err
	}, nil
}

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
