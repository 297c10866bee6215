// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/steer-dev/steer/cmd/steer/internal/envtest"
)

func TestMain(m *testing.M) {
	program := func() { os.Exit(run(context.Background(), os.Args[1:])) }
	programs := map[string]func(){"steer": program}
	for _, name := range envtest.Programs() {
		programs[name] = program
	}
	testscript.Main(m, programs)
}

// TestScripts runs the command line the way its users do: testdata/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	caches := []string{"GOCACHE", "GOMODCACHE"}
	found, err := exec.Command("go", append([]string{"env"}, caches...)...).Output()
	folders := strings.Split(strings.TrimSpace(string(found)), "\n")
	if err != nil || len(folders) != len(caches) {
		t.Fatalf("go env: %q, %v", found, err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			// The home folder is one of the script's; the caches of the go command stay.
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			for i, name := range caches {
				e.Setenv(name, folders[i])
			}
			return nil
		},
	})
}
