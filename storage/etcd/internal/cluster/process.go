// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// process is a program that ends with this one.
type process struct {
	dir, log string // the folder it runs in, and the file of its output there
	args     []string

	mu    sync.Mutex
	guard *exec.Cmd // nil: it does not run
	input io.Closer
	id    *os.Process
	ended chan struct{}
}

// start starts the program. A shell beside it kills it when its input is closed, as it is
// when this program ends.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guard != nil {
		return nil
	}
	const script = `"$0" "$@" >>"$LOG" 2>&1 & c=$!; echo $c; (cat >/dev/null; kill -9 $c) & wait $c; echo ended`
	guard := exec.CommandContext(context.Background(), "sh", append([]string{"-c", "exec 3<&0; " + strings.Replace(script, "cat >", "cat <&3 >", 1)}, p.args...)...)
	guard.Dir = p.dir
	guard.Env = append(os.Environ(), "LOG="+p.log)
	input, err := guard.StdinPipe()
	if err != nil {
		return err
	}
	output, err := guard.StdoutPipe()
	if err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return err
	}
	reader := bufio.NewReader(output)
	line, err := reader.ReadString('\n')
	if err != nil {
		return fmt.Errorf("start %s: %w", p.args[0], err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	if p.id, err = os.FindProcess(pid); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = reader.ReadString('\n') // it has ended, or the shell has
		close(ended)
	}()
	p.guard, p.input, p.ended = guard, input, ended
	return nil
}

// signal sends a signal to the process, if it runs.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guard != nil {
		_ = p.id.Signal(s) // one that has ended has nothing to be told
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// end sends a signal and waits for the end of the process.
func (p *process) end(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guard == nil {
		return
	}
	_ = p.id.Signal(syscall.SIGCONT)
	_ = p.id.Signal(s)
	<-p.ended
	_ = p.input.Close()
	_ = p.guard.Wait()
	p.guard = nil
}

// Pause stops the process, which keeps its connections; Resume lets it go on.
func (p *process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *process) Resume() { p.signal(syscall.SIGCONT) }
