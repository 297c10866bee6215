// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/internal/children"
)

// siblingStop is how long the program may take to stop, beside the delay that it is given.
const siblingStop = 4 * shutdownTimeout

// runSibling runs the program with the arguments of this one until it or ctx ends: a process
// cannot become another program here.
func runSibling(ctx context.Context, args []string, delay time.Duration) error {
	path, err := findSibling()
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...) // a program of ours, with the arguments of the user
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	child, err := children.Start(cmd)
	if err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	// The console tells both processes to stop; this one ends one that does not.
	ended := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(siblingStop + delay):
			child.Kill()
		case <-ended:
		}
	})()
	err = child.Wait()
	close(ended)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		return &command.ExitError{Status: exit.ExitCode()} // it has said why
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
