// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// waitDelay is how long a process has to end when its client is gone.
const waitDelay = 5 * time.Second

// Run runs a process with the streams of the session, until the process has ended and all
// output was sent, that of children which outlive it included. Its input may stay open
// longer: [exec.Cmd.Run] would wait for the client to close it. The error is that of [Exit].
//
// When the client is gone, or the server stops, [exec.CommandContext] kills the process. If
// it has not ended after cmd.WaitDelay, by default 5 s, it is killed in any case, and
// children that hold its output open are not waited for.
func (s *Session) Run(cmd *exec.Cmd) error {
	var stdin io.WriteCloser
	var stdout, stderr io.ReadCloser
	var err error
	cmd.Stdout, cmd.Stderr = nil, nil
	if s.Stdin != nil {
		if stdin, err = cmd.StdinPipe(); err != nil {
			return fmt.Errorf("stream: the input of %s: %w", cmd.Path, err)
		}
	}
	if s.Stdout != nil {
		if stdout, err = cmd.StdoutPipe(); err != nil {
			return fmt.Errorf("stream: the output of %s: %w", cmd.Path, err)
		}
	}
	if s.Stderr != nil {
		if stderr, err = cmd.StderrPipe(); err != nil {
			return fmt.Errorf("stream: the output of %s: %w", cmd.Path, err)
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if stdin != nil {
		s.copying.Go(func() {
			_, _ = io.Copy(stdin, s.Stdin) // the end of either side is no error
			_ = stdin.Close()              // the process may have ended
		})
	}
	var copying, watching sync.WaitGroup
	if stdout != nil {
		copying.Go(func() { _, _ = io.Copy(s.Stdout, stdout) }) // as above
	}
	if stderr != nil {
		copying.Go(func() { _, _ = io.Copy(s.Stderr, stderr) }) // as above
	}
	ended := make(chan struct{})
	watching.Go(func() {
		select {
		case <-ended:
			return
		case <-s.gone:
		}
		select {
		case <-ended:
		case <-time.After(cmp.Or(cmd.WaitDelay, waitDelay)):
			_ = cmd.Process.Kill() // it may have ended
			for _, output := range []io.Closer{stdout, stderr} {
				if output != nil {
					_ = output.Close()
				}
			}
		}
	})
	copying.Wait() // before the pipes are closed
	err = cmd.Wait()
	close(ended)
	watching.Wait()
	return Exit(err)
}
