// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package weight measures what an operator brings along: the packages that it
// links, their lines, the size of the binary, and what compiling it costs.
package weight

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

const group = "weight"

// Program is a main package.
type Program struct {
	// Dir is where the go command runs, Package what it builds there.
	Dir, Package string
}

// Run weighs both programs. Cold also compiles each with an empty build cache,
// which takes minutes of CPU time.
func Run(ctx context.Context, out *report.Report, log io.Writer, steer, upstream Program, cold bool) error {
	for _, side := range []struct {
		name    report.Side
		program Program
	}{{report.Steer, steer}, {report.Upstream, upstream}} {
		fmt.Fprintf(log, "weight: %s\n", side.name)
		if err := weigh(ctx, out, side.name, side.program, cold); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	out.Expect(group, "third-party packages", report.Goal{AtMost: 199})
	out.Expect(group, "binary", report.Goal{Times: 2})
	out.Expect(group, "compile from nothing, CPU", report.Goal{Times: 2})
	return nil
}

func weigh(ctx context.Context, out *report.Report, side report.Side, p Program, cold bool) (err error) {
	add := func(name, unit string, value float64) { out.Add(group, name, unit, report.Lower, side, value) }
	packages, lines, err := p.linked(ctx)
	if err != nil {
		return err
	}
	add("third-party packages", "", float64(packages))
	add("lines of them", "k", float64(lines)/1000)

	dir, err := os.MkdirTemp("", "steer-weight-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, build := range []struct{ name, flags string }{{"binary", ""}, {"binary, stripped", "-s -w"}} {
		file := filepath.Join(dir, "operator")
		if _, err := p.build(ctx, file, "", "-ldflags="+build.flags); err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		add(build.name, "MB", float64(info.Size())/1e6)
	}
	if !cold {
		return nil
	}
	cpu, err := p.build(ctx, filepath.Join(dir, "cold"), filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	add("compile from nothing, CPU", "s", cpu.Seconds())
	return nil
}

// build compiles the program and returns the CPU time that it took. An empty
// cache means the usual one.
func (p Program) build(ctx context.Context, file, cache string, flags ...string) (time.Duration, error) {
	command := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", file}, flags...), p.Package)...)
	command.Dir = p.Dir
	var problems bytes.Buffer
	command.Stderr = &problems
	if cache != "" {
		command.Env = append(os.Environ(), "GOCACHE="+cache)
	}
	if err := command.Run(); err != nil {
		return 0, fmt.Errorf("build %s: %w: %s", p.Package, err, problems.String())
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}

// linked counts the packages that are neither the standard library's nor ours,
// and their lines.
func (p Program) linked(ctx context.Context) (packages, lines int, err error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Dir,GoFiles", p.Package)
	command.Dir = p.Dir
	data, err := command.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("list %s: %w", p.Package, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var pkg struct {
			ImportPath, Dir string
			Standard        bool
			GoFiles         []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages, lines, nil
		} else if err != nil {
			return 0, 0, err
		}
		if pkg.Standard || strings.HasPrefix(pkg.ImportPath, "github.com/steer-dev/steer") {
			continue
		}
		packages++
		for _, file := range pkg.GoFiles {
			text, err := os.ReadFile(filepath.Join(pkg.Dir, file))
			if err != nil {
				return 0, 0, err
			}
			lines += bytes.Count(text, []byte("\n"))
		}
	}
}
