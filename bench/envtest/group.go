// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtest compares what an envtest suite takes with the usual programs
// and with Steer under their names: the same suite, the same controller-runtime.
package envtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/steer-dev/steer/bench/envtest/suite"
	"github.com/steer-dev/steer/bench/report"
)

const group = "envtest"

// Scale says how much work a run does.
type Scale struct {
	// Rounds is how often each side runs; the sides take turns.
	Rounds int
	// Tests is how many tests a suite has.
	Tests int
}

// Full is the scale of published figures, Quick that of a look in between.
func Full() Scale { return Scale{Rounds: 1, Tests: 50} }

// Quick is a tenth of it.
func Quick() Scale { return Scale{Rounds: 1, Tests: 5} }

// mode is a way to run the tests of a suite.
type mode struct {
	name   string
	atOnce int
	// within is how long tests are begun. With what is under way then, both modes
	// of both sides end within the time of a group: fifty tests on kube-apiserver do, on
	// a machine that is not busy, where four run at once; one after the other they
	// would take seven minutes, and those that it gets through stand for all.
	within time.Duration
}

func modes() []mode {
	return []mode{
		{"one after the other", 1, 150 * time.Second},
		{"four at once", 4, 5 * time.Minute},
	}
}

// Programs are the folders with etcd and kube-apiserver of the sides, and the
// built suite. A side without a folder is left out.
type Programs struct {
	Suite           string
	Steer, Upstream string
	// Definitions is the folder of what every test installs.
	Definitions string
}

// Link makes a folder in which a binary of Steer stands in for both programs.
func Link(binary, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(binary, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// Run measures both sides in turn.
func Run(ctx context.Context, out *report.Report, log io.Writer, programs Programs, scale Scale) error {
	out.Note("envtest: a test starts an environment with one definition, creates an object of it, reads it back and stops the environment; envtest starts etcd with --unsafe-no-fsync on both sides")
	sides := []struct {
		name   report.Side
		folder string
	}{{report.Steer, programs.Steer}, {report.Upstream, programs.Upstream}}
	for _, side := range sides { // until the binaries are in memory
		if side.folder != "" {
			if _, err := programs.run(ctx, side.folder, mode{atOnce: 1, within: time.Minute}, 1); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	for range out.Turns(ctx, group, scale.Rounds) {
		for _, m := range modes() {
			for _, side := range sides {
				if side.folder == "" {
					continue
				}
				fmt.Fprintf(log, "envtest: %s, %s\n", m.name, side.name)
				result, err := programs.run(ctx, side.folder, m, scale.Tests)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, side.name, err)
				}
				if n := len(result.Tests); n < scale.Tests {
					out.Note("envtest, %s: %s got through %d of %d tests in %v; the figures are per test", m.name, side.name, n, scale.Tests, m.within)
				}
				record(out, side.name, m, result)
			}
			out.Expect(group, wall(m), report.Goal{Times: 20})
		}
	}
	return nil
}

// run runs the suite once.
func (p Programs) run(ctx context.Context, folder string, m mode, tests int) (result suite.Result, err error) {
	command := exec.CommandContext(ctx, p.Suite, "-definitions", p.Definitions,
		"-tests", fmt.Sprint(tests), "-at-once", fmt.Sprint(m.atOnce), "-within", m.within.String())
	command.Stderr = os.Stderr
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+folder)
	data, err := command.Output()
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(data, &result)
}

func wall(m mode) string { return m.name + ": wall per test" }

func record(out *report.Report, side report.Side, m mode, r suite.Result) {
	n := len(r.Tests)
	if n == 0 {
		return
	}
	add := func(name string, ms float64) { out.Add(group, name, "ms", report.Lower, side, ms) }
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(n) }
	median := func(part func(suite.Test) time.Duration) float64 {
		values := make([]float64, n)
		for i, t := range r.Tests {
			values[i] = part(t).Seconds() * 1000
		}
		return report.Median(values)
	}
	add(wall(m), each(r.Wall))
	add(m.name+": start, median", median(func(t suite.Test) time.Duration { return t.Start }))
	add(m.name+": create and get, median", median(func(t suite.Test) time.Duration { return t.Body }))
	add(m.name+": stop, median", median(func(t suite.Test) time.Duration { return t.Stop }))
	add(m.name+": CPU of the programs per test", each(r.PlanesCPU))
	add(m.name+": CPU of the suite per test", each(r.SuiteCPU))
}
