// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs the servers that are compared, as children that end with this process.
package process

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"

	"github.com/steer-dev/steer/internal/children"
)

// patience is how long a process may take to end by itself.
const patience = 5 * time.Second

// Process is a child that is joined.
type Process struct {
	// Ended is closed after the process has ended; Err, how, is valid then.
	Ended chan struct{}
	Err   error

	command *exec.Cmd
	child   *children.Child
}

// Start starts a program, which writes to log.
func Start(log io.Writer, program string, args ...string) (*Process, error) {
	p := &Process{Ended: make(chan struct{}), command: exec.Command(program, args...)}
	p.command.Stdout, p.command.Stderr = log, log
	var err error
	if p.child, err = children.Start(p.command); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		defer close(p.Ended)
		p.Err = p.child.Wait()
	}()
	return p, nil
}

// String is the command line.
func (p *Process) String() string { return p.command.String() }

// PID is the id of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Stop asks the process to end, insists after a while, and returns when it is gone. It may
// be called more than once.
func (p *Process) Stop() {
	p.child.Signal(syscall.SIGINT)
	select {
	case <-p.Ended:
	case <-time.After(patience):
		p.child.Kill()
		<-p.Ended
	}
}

// FreePorts returns ports of 127.0.0.1 that were free a moment ago.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
