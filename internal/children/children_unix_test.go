// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package children_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/internal/children"
)

// groupTest has this test binary be the process that runs a command.
const groupTest = "STEER_TEST_GROUP"

func TestCommandsEndWithTheProcessThatStartedThem(t *testing.T) {
	t.Parallel()
	if os.Getenv(groupTest) != "" {
		// The command has a child of its own, as go test and make have, and neither heeds signals.
		cmd := exec.Command("sh", "-c", "trap '' INT TERM; sleep 600 & echo started; wait")
		cmd.Stdout = os.Stdout
		t.Fatal("it has ended: ", children.Run(t.Context(), cmd))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), groupTest+"=yes")
	// All of them have the end of the pipe: it is read to its end when the last one is gone.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the parent has it
	out := bufio.NewReader(r)
	for line := ""; line != "started\n"; {
		if line, err = out.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
}

func TestWhatACommandLeavesEndsWithIt(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "sleep 600 & exit 3")
	cmd.Stdout = w
	err = children.Run(t.Context(), cmd)
	_ = w.Close()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || children.ExitStatus(exit) != 3 {
		t.Errorf("got error %v, want exit status 3", err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // until the last one is gone
		t.Error(err)
	}
}

func TestCommandsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "sleep 600 & echo started; wait")
	cmd.Stdout = w
	go func() {
		_, _ = r.Read(make([]byte, 1)) // it has started
		cancel()
	}()
	exit, ok := errors.AsType[*exec.ExitError](children.Run(ctx, cmd))
	if !ok || children.ExitStatus(exit) != 128+int(syscall.SIGTERM) {
		t.Errorf("it ended with %v, want SIGTERM", exit)
	}
	_ = w.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
	if err := children.Run(ctx, exec.Command("sh", "-c", "echo begun")); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: got error %v", err)
	}
}

func TestCommandsThatCannotStartLeaveNothing(t *testing.T) {
	t.Parallel()
	_, err := children.Start(exec.Command(t.TempDir() + "/missing"))
	if !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "sh") {
		t.Errorf("got error %v", err)
	}
}

func TestSignalsAfterTheEndReachNobody(t *testing.T) {
	t.Parallel()
	c, err := children.Start(exec.Command("true"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	c.Signal(syscall.SIGTERM)
	c.Kill()
}
