// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	program := func() { os.Exit(run(context.Background(), os.Args[1:])) }
	testscript.Main(m, map[string]func(){"steer": program, etcdName: program, apiserverName: program, setupName: program})
}

// TestScripts runs the command line the way its users do: testdata/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}
