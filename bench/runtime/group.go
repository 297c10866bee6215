// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtime compares what operators run on: Steer's manager, cache and
// controller with controller-runtime's, each in a process of its own, against
// the same server.
package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/bench/report"
	"github.com/steer-dev/steer/bench/runtime/micro"
	"github.com/steer-dev/steer/bench/runtime/probe"
	"github.com/steer-dev/steer/bench/server"
)

const group = "runtime"

// Probes are the built commands.
type Probes struct {
	Steer, Upstream string
	// Tests are the compiled tests of package steertest; only [Run] needs them.
	Tests string
}

// Run measures both sides in turn, rounds times, with so many objects on the
// server and in the answers for single steps. root is the directory of the main
// module.
func Run(ctx context.Context, out *report.Report, log io.Writer, subject server.Steer, probes Probes, root string, rounds, objects int) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	if err := server.Seed(ctx, instance, objects); err != nil {
		return err
	}
	for round := range out.Turns(ctx, group, rounds) {
		fmt.Fprintf(log, "runtime: round %d\n", round+1)
		if err := inTest(ctx, out, probes.Tests, filepath.Join(root, "steertest")); err != nil {
			return err
		}
		for _, what := range []struct {
			name    string
			measure func(side report.Side, binary string) error
		}{
			{"single steps", func(side report.Side, binary string) error {
				return steps(ctx, out, side, binary, instance.Kubeconfig, objects)
			}},
			{"operator", func(side report.Side, binary string) error {
				return operator(ctx, out, side, binary, instance.Kubeconfig, objects)
			}},
		} {
			for _, side := range []struct {
				name   report.Side
				binary string
			}{{report.Steer, probes.Steer}, {report.Upstream, probes.Upstream}} {
				fmt.Fprintf(log, "runtime: %s, %s\n", what.name, side.name)
				if err := what.measure(side.name, side.binary); err != nil {
					return fmt.Errorf("%s, %s: %w", side.name, what.name, err)
				}
			}
		}
	}
	expect(out)
	return nil
}

const (
	failover       = "clean stop of a leader to the next one's reconcile"
	firstReconcile = "steertest.New to the first reconcile"
)

// operator measures an operator against the server.
func operator(ctx context.Context, out *report.Report, side report.Side, binary, kubeconfig string, objects int) error {
	result, err := Probe[probe.Result](ctx, binary, "-kubeconfig", kubeconfig, "-objects", fmt.Sprint(objects))
	if err != nil {
		return err
	}
	record(out, side, result, objects)
	over, err := Probe[micro.Result](ctx, binary, "-failover", "-kubeconfig", kubeconfig)
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	out.Add(group, failover, "ms", report.Lower, side, over["failover"])
	return nil
}

// inTest measures how soon an operator reconciles in a test, by the benchmark of
// package steertest.
func inTest(ctx context.Context, out *report.Report, tests, dir string) error {
	command := exec.CommandContext(ctx, tests, "-test.run", "^$", "-test.bench", "^BenchmarkFirstReconcile$", "-test.benchtime", "50x")
	command.Dir, command.Stderr = dir, os.Stderr
	text, err := command.Output()
	if err != nil {
		return fmt.Errorf("benchmark of steertest: %w", err)
	}
	var nanos float64
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "ns/op" {
			if nanos, err = strconv.ParseFloat(fields[2], 64); err != nil {
				return err
			}
		}
	}
	if nanos == 0 {
		return fmt.Errorf("benchmark of steertest: no result in %q", text)
	}
	out.Add(group, firstReconcile, "ms", report.Lower, report.Steer, nanos/1e6)
	return nil
}

// Probe runs one of the [Probes] and reads what it says.
func Probe[T micro.Result | probe.Result](ctx context.Context, binary string, args ...string) (result T, err error) {
	command := exec.CommandContext(ctx, binary, args...)
	command.Stderr = os.Stderr
	data, err := command.Output()
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(data, &result)
}

func record(out *report.Report, side report.Side, r probe.Result, objects int) {
	add := func(name, unit string, value float64) { out.Add(group, name, unit, report.Lower, side, value) }
	of := fmt.Sprintf(" of %d", objects)
	add("restart: start to the last reconcile"+of, "ms", r.SyncMillis)
	add("its CPU", "ms", r.SyncCPUMillis)
	add("live heap after it", "MB", r.LiveHeapMB)
	add("peak resident", "MB", r.PeakMB)
	add("change to reconcile, p50", "ms", r.EventP50)
	add("change to reconcile, p99", "ms", r.EventP99)
	add("own write to the read that shows it, p50", "µs", r.OwnWriteP50)
	add("reads after an own write that do not show it", "%", r.StaleReads)
	add("cached get, CPU", "ns", r.GetNanos)
	add("cached get, allocations", "", r.GetAllocs)
	add("cached list"+of+", CPU", "ms", r.ListMillis)
}
