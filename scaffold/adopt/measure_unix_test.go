// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package adopt

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// measureTest has this test binary be the process that measures, in the folder it names.
const measureTest = "STEER_TEST_MEASURE"

// What make has started ends with a steer adopt that is killed.
func TestTargetsThatAreMeasuredEndWithSteer(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(measureTest); dir != "" {
		took, err := measure(t.Context(), dir, "test", false, func(string) {})
		t.Fatal("it has ended: ", took, err)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, makefileName), "test:\n\t@sh -c \"trap '' INT TERM; exec >held; echo started; sleep 600 & wait\"\n")
	held := filepath.Join(dir, "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), measureTest+"="+dir)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(held) // waits for the target
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // only read
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); line != "started\n" {
		t.Errorf("the target says %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil { // until the last one is gone
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
}
