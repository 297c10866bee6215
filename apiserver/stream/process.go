// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"io"
	"os/exec"
)

// Run runs a process with the streams of the session, until the process has ended and all
// of its output was sent. Its input may stay open longer: [exec.Cmd.Run] would wait for the
// client to close it. The error is that of [Exit].
func (s *Session) Run(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	if s.Stdin == nil {
		return Exit(cmd.Run())
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("stream: the input of %s: %w", cmd.Path, err)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.copying.Go(func() {
		_, _ = io.Copy(in, s.Stdin) // the end of either side is no error
		_ = in.Close()              // the process may have ended
	})
	return Exit(cmd.Wait())
}
