// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Child is a command that was started. Its methods are safe for concurrent use, but Wait is
// called once.
type Child struct {
	cmd *exec.Cmd

	mu  sync.Mutex
	job windows.Handle // 0: it has ended
}

// start has the command in a job that Windows kills when its last handle is closed, as it is
// when this process ends.
func start(cmd *exec.Cmd) (*Child, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a job: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, process)
		_ = windows.CloseHandle(process)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = windows.CloseHandle(job)
		return nil, fmt.Errorf("start %s in a job: %w", cmd.Path, err)
	}
	return &Child{cmd: cmd, job: job}, nil
}

// Wait waits for the end of the command, as [exec.Cmd.Wait] does, and then kills what it has
// left.
func (c *Child) Wait() error {
	err := c.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = windows.CloseHandle(c.job)
	c.job = 0
	return err
}

// Signal kills the command and what it has started: Windows has no signals between processes. A
// SIGINT comes from the console, which sends it to all of its processes, and is not sent again.
func (c *Child) Signal(s syscall.Signal) {
	if s != syscall.SIGINT {
		c.Kill()
	}
}

// Kill ends the command and what it has started.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job != 0 {
		_ = windows.TerminateJobObject(c.job, 1) // they may have ended
	}
}

// ExitStatus is that of the command.
func ExitStatus(exit *exec.ExitError) int { return exit.ExitCode() }
