// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReleasesThatAreInterruptedLeaveNothing ends the program while it builds, as a terminal
// and as CI do.
func TestReleasesThatAreInterruptedLeaveNothing(t *testing.T) {
	t.Parallel()
	program, repo := filepath.Join(t.TempDir(), "release"), repository(t, tree())
	command(t, ".", "go", "build", "-o", program, ".")
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
			cmd := exec.CommandContext(t.Context(), program, "build", "-repo", repo, "-version", version, "-out", out)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			cmd.WaitDelay = time.Minute
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "building for ") {
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // until it has ended
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it succeeds")
			}
			for _, dir := range []string{temp, out} {
				if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
					t.Errorf("%s has %v", dir, entries)
				}
			}
		})
	}
}
