// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package children

import (
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// Child is a command that was started. Its methods are safe for concurrent use, but Wait is
// called once.
type Child struct {
	cmd *exec.Cmd
	// guard is the first process of the group: a shell that kills the group when this process
	// has ended, as it sees by the end of a pipe.
	guard *exec.Cmd
	held  io.Closer

	mu    sync.Mutex
	ended bool // the number of the group may be that of others
}

// guardScript outlives what the group is sent.
const guardScript = `trap '' INT TERM HUP QUIT USR1 USR2; read -r line; kill -s KILL 0`

func start(cmd *exec.Cmd) (*Child, error) {
	c := &Child{cmd: cmd, guard: exec.Command("sh", "-c", guardScript)}
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	held, err := c.guard.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.held = held
	if err := c.guard.Start(); err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: c.guard.Process.Pid}
	if err := cmd.Start(); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// Wait waits for the end of the command, as [exec.Cmd.Wait] does, and then kills what it has
// left of its group.
func (c *Child) Wait() error {
	err := c.cmd.Wait()
	c.end()
	return err
}

// end kills the group.
func (c *Child) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signal(syscall.SIGKILL)
	c.ended = true
	_ = c.guard.Wait() // it was killed; until now its number was no one else's
	_ = c.held.Close() // Wait has closed it
}

// Signal sends a signal to the command and to what it has started, if they run.
func (c *Child) Signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signal(s)
}

// Kill ends the command and what it has started.
func (c *Child) Kill() { c.Signal(syscall.SIGKILL) }

// signal is Signal; mu is held.
func (c *Child) signal(s syscall.Signal) {
	if !c.ended {
		_ = syscall.Kill(-c.guard.Process.Pid, s) // the guard is there
	}
}

// ExitStatus is what a shell would report.
func ExitStatus(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
