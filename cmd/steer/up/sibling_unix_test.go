// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package up

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// siblingTest has this test binary be the command up whose objects are in etcd.
const siblingTest = "STEER_TEST_SIBLING"

// The program that serves with etcd is the process that was started: there is no child that a
// kill of that leaves.
func TestUpBecomesTheProgramForEtcd(t *testing.T) {
	t.Parallel()
	if os.Getenv(siblingTest) != "" {
		t.Fatal(runSibling(t.Context(), []string{"up", "--etcd-servers=x"}, 0))
	}
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$$ $*\"\n"
	if err := os.WriteFile(filepath.Join(dir, siblingName), []byte(script), 0o755); err != nil { // a program
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	steer := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	steer.Env = append(os.Environ(), siblingTest+"=yes", "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := steer.CombinedOutput()
	if want := fmt.Sprintf("%d up --etcd-servers=x", steer.Process.Pid); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}

func TestKeysThatOthersCanReadAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"ca.key": 0o600, "sa.key": 0o640, "front-proxy-ca.key": 0o604, "ca.crt": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	want := filepath.Join(dir, "front-proxy-ca.key") + " " + filepath.Join(dir, "sa.key")
	if got := strings.Join(readable(dir), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := readable(""); len(got) > 0 {
		t.Errorf("without a folder: %v", got)
	}
}
