// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/scaffold/project"
)

const (
	// stopOperator is how long the operator may take to end before it is killed.
	stopOperator = 5 * time.Second
	// stopOutput is how long what the operator has started may keep its output open.
	stopOutput = time.Second
)

// next is the end of the name of a binary that takes the place of the one that runs.
const next = ".next"

// executable is the name of a binary.
func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// binary is the program of the operator.
func (l *loop) binary() string { return filepath.Join(l.target.folder(), executable("operator")) }

// build builds the operator. Without the tables of debuggers this takes two thirds of the
// time.
func (l *loop) build(ctx context.Context) error {
	flag := "-ldflags=-w"
	if l.Debug != "" {
		flag = "-gcflags=all=-N -l"
	}
	return l.compile(ctx, l.binary(), "./cmd", flag)
}

// buildError is a build that failed, with what the compiler said.
type buildError struct {
	pkg   string
	lines []string
	err   error
}

func (e *buildError) Error() string { return "go build " + e.pkg + ": " + e.err.Error() }
func (e *buildError) Unwrap() error { return e.err }

// defaultDebug is the address for debuggers that editors try first.
const defaultDebug = "127.0.0.1:2345"

// toggleDebug makes the next build one for debuggers, or not. Webhooks are configured anew:
// they have another timeout.
func (l *loop) toggleDebug(ctx context.Context) error {
	if l.Debug != "" {
		l.Debug = ""
	} else if _, err := findDebugger(ctx, l.Dir); err != nil {
		return err
	} else {
		l.Debug = defaultDebug
	}
	delete(l.applied, webhookFile)
	return nil
}

// restart starts the operator that was built last anew.
func (l *loop) restart(ctx context.Context) error {
	l.stop()
	return l.start(ctx)
}

// start starts the operator that was built last.
func (l *loop) start(ctx context.Context) error {
	command := []string{l.binary()}
	if l.Debug != "" {
		debugger, err := findDebugger(ctx, l.Dir)
		if err != nil {
			return err
		}
		command = []string{
			debugger, "exec", "--headless", "--listen=" + l.Debug, "--api-version=2", "--accept-multiclient", "--continue",
			l.binary(), "--",
		}
	}
	command = append(append(command, "--zap-devel", "--health-probe-bind-address=0"), l.target.arguments()...)
	if l.live != nil {
		command = append(command, l.live.feed.Arguments()...)
		l.live.began()
	}
	child := exec.Command(command[0], command[1:]...)
	l.advice.begin()
	child.Dir, child.Stdout, child.Stderr = l.Dir, io.MultiWriter(l.Out, l.advice.writer()), io.MultiWriter(l.Errs, l.advice.writer())
	child.WaitDelay = stopOutput
	if l.In != nil && l.live == nil {
		child.Stdin = l.In
	}
	child.Env = append(os.Environ(), l.target.environment()...)
	child.Env = append(child.Env, "STEER_RECORD_DIR="+filepath.Join(l.Dir, filepath.FromSlash(project.RecordsDir)))
	running, err := children.Start(child)
	if err != nil {
		return err
	}
	ended := make(chan string, 1)
	go func() { ended <- endOf(running.Wait()) }()
	l.child, l.ended = running, ended
	if l.live != nil {
		following, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.live.feed.Follow(following)
		}()
		l.unfollow = func() {
			stop()
			<-done
		}
	}
	if l.Debug != "" {
		fmt.Fprintf(l.Errs, "steer: debuggers of Go can attach to %s, as with: dlv connect %s\n", l.Debug, l.Debug)
	}
	return nil
}

// stop ends the operator, if it runs, and waits for it.
func (l *loop) stop() {
	if l.unfollow != nil {
		l.unfollow()
		l.unfollow = nil
	}
	if l.child == nil {
		return
	}
	grace := stopOperator
	if l.Debug != "" { // it may be at a breakpoint
		grace = stopOutput
	}
	l.child.Signal(syscall.SIGTERM)
	select {
	case <-l.ended:
	case <-time.After(grace):
		l.child.Kill()
		<-l.ended
	}
	l.child, l.ended = nil, nil
}

// errNoDebugger says how to get the debugger.
var errNoDebugger = errors.New("the debugger of Go is missing: run go install github.com/go-delve/delve/cmd/dlv@latest, or go get -tool github.com/go-delve/delve/cmd/dlv in the project")

// findDebugger returns the path of dlv: a tool of the project, or on the PATH.
func findDebugger(ctx context.Context, dir string) (string, error) {
	tool := exec.CommandContext(ctx, "go", "tool", "-n", "dlv")
	tool.Dir = dir
	out, err := tool.Output()
	if path := strings.TrimSpace(string(out)); err == nil && filepath.IsAbs(path) {
		// The line names a file of the build cache, which has to be there.
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("dlv"); err == nil {
		return path, nil
	}
	return "", errNoDebugger
}
