// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/steer-dev/steer/sim/internal/engine"
)

// Process is a worker. It is for one goroutine at a time.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
	runs   int
}

// Answer is what came of a request.
type Answer struct {
	engine.Record
	// Output is what the test has logged and printed; the end of it.
	Output []string
	// Fresh reports that the process had made no run before.
	Fresh bool
}

// outputLines is how much of the output of a run is kept.
const outputLines = 60

// Start starts a worker for a test, by its name, with more variables in its environment.
func Start(test string, env ...string) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("sim: start a worker: %w", err)
	}
	p := &Process{stderr: &tail{most: 64 << 10}}
	// The output is only complete, and in order, if it is not held back until the end.
	p.cmd = exec.Command(binary, "-test.run="+pattern(test), "-test.v=true", "-test.count=1", "-test.timeout=0", "-test.parallel=1")
	p.cmd.Env = append(append(os.Environ(), variable+"="+test, promptly()), env...)
	p.cmd.Stderr = p.stderr
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		var out io.Reader
		if out, err = p.cmd.StdoutPipe(); err == nil {
			p.out = bufio.NewReaderSize(out, 64<<10)
			err = p.cmd.Start()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sim: start a worker: %w", err)
	}
	return p, nil
}

// promptly has a process that was built with -race end at once: by default it waits for a
// second, in case that another race is found. Those of a run have been found when it is over.
func promptly() string {
	const variable = "GORACE"
	return variable + "=atexit_sleep_ms=0 " + os.Getenv(variable)
}

// pattern matches a test, or a subtest, and no other.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// Run makes a run. The end of ctx ends the process. alive reports whether the worker can
// make another one.
func (p *Process) Run(ctx context.Context, r Request) (a Answer, alive bool, err error) {
	defer context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })()
	a.Fresh = p.runs == 0
	p.runs++
	text, err := json.Marshal(r)
	if err != nil {
		return a, true, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return a, false, p.died(ctx, &a)
	}
	for {
		line, err := p.out.ReadString('\n')
		if text, ok := strings.CutPrefix(line, mark); ok {
			err := json.Unmarshal([]byte(text), &a.Record)
			over := a.Trouble != nil && (a.Trouble.Type == engine.Left || a.Trouble.Type == engine.Stuck)
			if over {
				p.Stop()
			}
			return a, !over, err
		}
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			if len(a.Output) == outputLines {
				a.Output = a.Output[1:]
			}
			a.Output = append(a.Output, line)
		}
		if err != nil {
			return a, false, p.died(ctx, &a)
		}
	}
}

// died makes the end of the process the trouble of the run.
func (p *Process) died(ctx context.Context, a *Answer) error {
	_ = p.in.Close()
	err := p.cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	how := "it ended by itself"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		how = exit.String()
	}
	a.Trouble = &engine.Trouble{Type: engine.Died, Message: strings.TrimSpace(how + "\n" + p.stderr.firstLines(24))}
	return nil
}

// Stop ends a worker that has no run, and returns how much CPU time it has taken.
func (p *Process) Stop() time.Duration {
	_ = p.in.Close()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// tail keeps the beginning of what a process says of its end: the reason comes first, the
// stacks of all goroutines later.
type tail struct {
	most int
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - t.most; over > 0 {
		t.text = t.text[:t.most]
	}
	return len(p), nil
}

func (t *tail) firstLines(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.SplitN(string(t.text), "\n", n+1)
	return strings.Join(lines[:min(len(lines), n)], "\n")
}
