// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// workTest has this test binary be the program, with the programs in the folder it names.
const workTest = "STEER_TEST_WORK"

// The operator, and a kubectl that waits, end with a program that is killed.
func TestWorkEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(workTest); dir != "" {
		w := &work{env: os.Environ(), log: filepath.Join(dir, "operator.log")}
		if err := w.operate(t.Context(), flags{operator: filepath.Join(dir, "operator")}); err != nil {
			t.Fatal(err)
		}
		w.call("scale", "")
		t.Fatal("kubectl has ended: ", w.failed)
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"operator": "#!/bin/sh\n" + hold("operator.held"),
		"kubectl":  "#!/bin/sh\n[ \"$1\" = scale ] || exit 0\n" + hold("kubectl.held"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil { // it is run
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(dir, name+".held"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	parent.Dir = dir
	parent.Env = append(os.Environ(), workTest+"="+dir, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var outs []*bufio.Reader
	for _, name := range []string{"operator", "kubectl"} {
		r, err := os.Open(filepath.Join(dir, name+".held")) // waits for the program
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }() // only read
		out := bufio.NewReader(r)
		if line, err := out.ReadString('\n'); line != "started\n" {
			t.Errorf("%s says %q, %v", name, line, err)
		}
		outs = append(outs, out)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, out := range outs {
		if _, err := io.Copy(io.Discard, out); err != nil { // until the last one is gone
			t.Error(err)
		}
	}
	_ = parent.Wait() // it was killed
}

// hold is the end of a script that heeds no signals and has a file open while it, or what it has
// started, runs.
func hold(file string) string {
	return "trap '' INT TERM; exec >" + file + "; echo started; sleep 600 & wait\n"
}
