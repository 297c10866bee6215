// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/machines/api/v1"
)

// stopTimeout is how long machines have when the server ends.
const stopTimeout = 5 * time.Second

// outputTimeout is how long the children of a process that has ended may still write.
const outputTimeout = time.Second

// host has the processes of the machines.
type host struct {
	mu        sync.Mutex
	processes map[types.NamespacedName]*process
	// ended has the machines whose process has ended.
	ended chan controller.Request
	// stopping is closed when nothing reads ended any more.
	stopping chan struct{}
}

func newHost() *host {
	return &host{
		processes: map[types.NamespacedName]*process{}, ended: make(chan controller.Request), stopping: make(chan struct{}),
	}
}

// process is the process of a machine.
type process struct {
	uid    types.UID
	born   metav1.Time // of the machine
	cmd    *exec.Cmd
	output *journal
	done   chan struct{} // closed when it has ended; code is set then
	code   int

	mu    sync.Mutex
	ports []int32 // as in the spec of the machine
}

// allow sets the ports that clients may be forwarded to.
func (p *process) allow(ports []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports = ports
}

// allows reports whether clients may be forwarded to a port.
func (p *process) allows(port uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.ports, int32(port))
}

// process returns the process of a machine, nil if there is none.
func (h *host) process(name types.NamespacedName) *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.processes[name]
}

// start starts the process of a machine.
func (h *host) start(name types.NamespacedName, m *v1.Machine) (*process, error) {
	p := &process{uid: m.UID, born: m.CreationTimestamp, cmd: exec.Command(m.Spec.Command[0], m.Spec.Command[1:]...), output: newJournal(), done: make(chan struct{})} // it is what the example is for
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that signals reach its children
	p.cmd.WaitDelay = outputTimeout
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.processes[name] = p
	go func() {
		_ = p.cmd.Wait()          // how it ended is in its state
		p.signal(syscall.SIGKILL) // what it has left behind
		p.code = p.cmd.ProcessState.ExitCode()
		p.output.end()
		close(p.done)
		select {
		case h.ended <- controller.Request{NamespacedName: name}:
		case <-h.stopping:
		}
	}()
	return p, nil
}

// forget removes a process that has ended.
func (h *host) forget(name types.NamespacedName, p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.processes[name] == p {
		delete(h.processes, name)
	}
}

// signal signals a process and its children.
func (p *process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // it may have ended
}

// exited reports whether the process has ended.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stopAll ends all processes, when no more are started.
func (h *host) stopAll() {
	close(h.stopping)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.processes {
		p.signal(syscall.SIGTERM)
	}
	late := time.After(stopTimeout)
	for _, p := range h.processes {
		select {
		case <-p.done:
			continue
		case <-late:
			late = time.After(0) // for the others
		}
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}
