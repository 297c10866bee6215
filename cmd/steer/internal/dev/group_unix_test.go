// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dev

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
)

// groupTest has this test binary be the process that runs a command.
const groupTest = "STEER_TEST_GROUP"

func TestCommandsEndWithTheProcessThatStartedThem(t *testing.T) {
	t.Parallel()
	if os.Getenv(groupTest) != "" {
		// The command has a child of its own, as go run and make have.
		err := runCommand(t.Context(), "/bin/sh", []string{"sh", "-c", "sleep 600 & echo started; wait"})
		t.Fatal("it has ended: ", err)
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
