// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/steer-dev/steer/internal/children"
)

// process is a program that ends with this one.
type process struct {
	dir, log string // the folder it runs in, and the file of its output there
	args     []string

	mu    sync.Mutex
	cmd   *exec.Cmd // nil: it does not run
	ended chan struct{}
}

// start starts the program, unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(p.dir, p.log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the program has it
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	child, err := children.Start(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.args[0], err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Wait() // how it has ended is in its log
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// signal sends a signal to the process, if it runs.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // one that has ended has nothing to be told
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// end sends a signal and waits for the end of the process.
func (p *process) end(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(s)
	<-p.ended
	p.cmd = nil
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return true
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Pause stops the process, which keeps its connections; Resume lets it go on.
func (p *process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *process) Resume() { p.signal(syscall.SIGCONT) }
