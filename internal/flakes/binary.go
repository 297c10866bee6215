// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// testBinary is the compiled tests of a package.
type testBinary struct {
	pkg  *testedPackage
	file string
	hash string // of the file
}

// compile makes the test binary of a package in a folder, as go test -race does.
func compile(ctx context.Context, p *testedPackage, folder string) (*testBinary, error) {
	name := strings.NewReplacer("/", "-", ".", "").Replace(strings.TrimPrefix(p.short(), "./"))
	if name == "" {
		name = "root"
	}
	b := &testBinary{pkg: p, file: filepath.Join(folder, name+".test")}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	// Without symbols for debuggers, which go test links neither.
	if _, err := goCommand(ctx, p.dir, "test", "-c", "-race", "-buildvcs=false", "-ldflags=-s -w", "-o", b.file, "."); err != nil {
		return nil, fmt.Errorf("compile the tests of %s: %w", p.short(), err)
	}
	f, err := os.Open(b.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	b.hash = hex.EncodeToString(h.Sum(nil)[:12])
	return b, nil
}

// condition is what a run has around it.
type condition struct {
	// Processors is GOMAXPROCS, also that of processes which the tests start: with one, tests
	// that are parallel take turns.
	Processors int `json:"processors"`
	// Loaded says that a process beside it burns more processors than the machine has.
	Loaded bool `json:"loaded,omitempty"`
}

func (c condition) String() string {
	s := "2 processors"
	if c.Processors == 1 {
		s = "1 processor"
	}
	if c.Loaded {
		s += ", loaded"
	}
	return s
}

// conditionOf is that of a round of a package, counted from zero: four rounds have all, and any
// two that follow one another are one with load and one without.
func conditionOf(round int) condition {
	return [...]condition{{Processors: 2, Loaded: true}, {Processors: 1}, {Processors: 1, Loaded: true}, {Processors: 2}}[round%4]
}

// runner runs test binaries.
type runner struct {
	goroot    string
	test2json string
	timeout   time.Duration
}

func newRunner(ctx context.Context, o options) (*runner, error) {
	goroot, err := goCommand(ctx, o.folder, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	// The path of the program, so that no run pays for the go command.
	tool, err := goCommand(ctx, o.folder, "tool", "-n", "test2json")
	if err != nil {
		return nil, err
	}
	if fields := strings.Fields(string(tool)); len(fields) == 1 {
		if _, err := os.Stat(fields[0]); err == nil {
			return &runner{goroot: strings.TrimSpace(string(goroot)), test2json: fields[0], timeout: o.timeout}, nil
		}
	}
	// It is compiled when it is used first.
	return nil, fmt.Errorf("go tool -n test2json: %q is no program: run `go tool test2json -h` once", strings.TrimSpace(string(tool)))
}

// run runs a binary once, in the folder of its package as go test does, and returns its record.
// An error says that it could not be run, or that ctx ended first.
func (r *runner) run(ctx context.Context, b *testBinary, c condition, seed int64) (run, error) {
	cmd := exec.CommandContext(ctx, r.test2json, "-t", "-p", b.pkg.path, b.file, "-test.v=test2json", "-test.paniconexit0",
		"-test.timeout="+r.timeout.String(), "-test.shuffle="+strconv.FormatInt(seed, 10))
	cmd.Dir = b.pkg.dir
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS="+strconv.Itoa(c.Processors), // with the PWD of that folder
		"PATH="+filepath.Join(r.goroot, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return run{}, err
	}
	cmd.Stderr = cmd.Stdout
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return run{}, err
	}
	tests, readErr := readEvents(stdout)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return run{}, ctx.Err()
	}
	if readErr != nil {
		return run{}, readErr
	}
	return run{
		Package: b.pkg.path, Binary: b.hash, condition: c, Seed: seed, Seconds: time.Since(begin).Seconds(), outcome: tests.end(err),
	}, nil
}
