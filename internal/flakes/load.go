// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// loadCommand is the command of the child process that is the load.
const loadCommand = "burn"

// burn keeps processors busy until in ends: with the process that holds its other end, however
// that ends.
func burn(processors int, in io.Reader) {
	for range processors {
		go func() {
			for x := uint64(1); ; x = x*6364136223846793005 + 1442695040888963407 {
			}
		}()
	}
	_, _ = io.Copy(io.Discard, in)
}

// burner is the process that is the load beside a run.
type burner struct {
	process *exec.Cmd
	stdin   io.Closer
}

// startLoad starts this program once more, as the load.
func startLoad(ctx context.Context, processors int) (*burner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := &burner{process: exec.CommandContext(ctx, self, loadCommand, strconv.Itoa(processors))}
	l.process.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(processors))
	if l.stdin, err = l.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := l.process.Start(); err != nil {
		return nil, fmt.Errorf("start the load: %w", err)
	}
	return l, nil
}

// stop ends it and waits for its end.
func (l *burner) stop() {
	l.stdin.Close()
	_ = l.process.Wait() // of its end there is nothing to know
}
