// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures how costs grow: of requests and memory with objects, of
// events with watchers, of reconciles with controllers, of a cache with its objects.
package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/steer-dev/steer/bench/report"
	"github.com/steer-dev/steer/bench/runtime"
	"github.com/steer-dev/steer/bench/runtime/micro"
	"github.com/steer-dev/steer/bench/server"
)

const group = "scale"

// Size says how far a run goes.
type Size struct {
	// Objects and Watchers are the steps.
	Objects, Watchers []int
	// Requests is how many of a kind are measured at each step.
	Requests int
	// Fill is how long filling one server may take before larger steps are left
	// out: the slower side must not run for an hour.
	Fill time.Duration
}

// Full is the size of published figures, Quick that of a look in between.
func Full() Size {
	return Size{Objects: []int{1000, 10_000, 100_000}, Watchers: []int{1, 20, 200}, Requests: 400, Fill: 150 * time.Second}
}

// Quick goes up to 10,000 objects.
func Quick() Size {
	return Size{Objects: []int{1000, 10_000}, Watchers: []int{1, 20, 200}, Requests: 200, Fill: 60 * time.Second}
}

// Run measures both sides, one after the other. A nil peer is left out of what needs
// a server.
func Run(ctx context.Context, out *report.Report, log io.Writer, steer, peer server.Subject, probes runtime.Probes, size Size) error {
	for _, side := range []struct {
		name    report.Side
		subject server.Subject
		probe   string
	}{{report.Steer, steer, probes.Steer}, {report.Peer, peer, probes.Peer}} {
		fmt.Fprintf(log, "scale: %s, runtime\n", side.name)
		if err := measureRuntime(ctx, out, side.name, side.probe, size); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		if side.subject == nil {
			continue
		}
		fmt.Fprintf(log, "scale: %s, server\n", side.name)
		if err := measureServer(ctx, out, side.name, side.subject, size); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	return nil
}

func measureServer(ctx context.Context, out *report.Report, side report.Side, subject server.Subject, size Size) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	growth, err := server.NewGrowth(ctx, instance)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, growth.Close()) }()
	for _, watchers := range size.Watchers {
		cost, lost, err := growth.Watch(ctx, watchers, 300)
		if err != nil {
			return err
		}
		at := report.Point{Of: "watchers", At: float64(watchers)}
		at.Line = "event, server CPU"
		out.AddPoint(group, at, "µs", side, cost.CPU)
		at.Line = "event, lag p99"
		out.AddPoint(group, at, "ms", side, cost.P99)
		if lost > 0 {
			out.Note("scale, %s: %d events did not reach %d watchers", side, lost, watchers)
		}
	}
	begin := time.Now()
	for _, objects := range size.Objects {
		limited, cancel := context.WithTimeout(ctx, size.Fill-time.Since(begin))
		err := growth.Fill(limited, objects)
		cancel()
		if errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			out.Note("scale, %s: %d objects could not be created within %v, so nothing was measured there", side, objects, size.Fill)
			return nil
		}
		if err != nil {
			return err
		}
		at := report.Point{Of: "objects", At: float64(objects), Line: "server memory, resident"}
		out.AddPoint(group, at, "MB", side, growth.Memory())
		for _, request := range server.Requests() {
			n := size.Requests
			switch request { // as many as make the clock's 10 ms small
			case "get":
				n *= 5
			case "page of 500":
				n /= 10
			}
			cost, err := growth.Cost(ctx, request, n)
			if err != nil {
				return err
			}
			at.Line = request + ", server CPU"
			out.AddPoint(group, at, "µs", side, cost.CPU)
			at.Line = request + ", p50"
			out.AddPoint(group, at, "ms", side, cost.P50)
		}
	}
	return nil
}

// measureRuntime runs a probe and puts what it says on lines.
func measureRuntime(ctx context.Context, out *report.Report, side report.Side, probe string, size Size) error {
	largest := size.Objects[len(size.Objects)-1]
	command := exec.CommandContext(ctx, probe, "-growth", "-objects", fmt.Sprint(largest))
	command.Stderr = os.Stderr
	data, err := command.Output()
	if err != nil {
		return err
	}
	var result micro.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return err
	}
	for _, l := range []struct{ key, of, name, unit string }{
		{"reconcile CPU", "controllers", "reconcile of one event, CPU", "µs"},
		{"heap", "controllers", "operator's live heap", "MB"},
		{"sync CPU", "objects", "initial sync of one object, CPU", "µs"},
		{"heap", "objects", "live heap of one cached object", "B"},
		{"event CPU", "objects", "event into a cache, CPU", "µs"},
		{"get CPU", "objects", "cached get, CPU", "µs"},
	} {
		for _, n := range []int{1, 10, 50, 1000, 10_000, 100_000} {
			if value, ok := result[l.key+", "+strconv.Itoa(n)+" "+l.of]; ok {
				out.AddPoint(group, report.Point{Line: l.name, Of: l.of, At: float64(n)}, l.unit, side, value)
			}
		}
	}
	return nil
}
