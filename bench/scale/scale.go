// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures how costs grow: of requests and memory with objects, of
// events with watchers, of reconciles with controllers, of a cache with its objects.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// Fill is how long filling one server, and measuring in between, may take before
	// larger steps are left out. It is less where the group's time ends before.
	Fill time.Duration
}

// Full is the size of published figures, Quick that of a look in between.
func Full() Size {
	return Size{Objects: []int{1000, 10_000, 100_000}, Watchers: []int{1, 20, 200}, Requests: 400, Fill: 330 * time.Second}
}

// Quick goes up to 10,000 objects.
func Quick() Size {
	return Size{Objects: []int{1000, 10_000}, Watchers: []int{1, 20, 200}, Requests: 200, Fill: 60 * time.Second}
}

// afterFill is the part of the group's time that is kept for what is measured once
// a server is filled.
const afterFill = 75 * time.Second

// Run measures both sides, one after the other. A nil upstream is left out of what needs
// a server.
func Run(ctx context.Context, out *report.Report, log io.Writer, steer, upstream server.Subject, probes runtime.Probes, size Size) error {
	for _, side := range []struct {
		name    report.Side
		subject server.Subject
		probe   string
	}{{report.Steer, steer, probes.Steer}, {report.Upstream, upstream, probes.Upstream}} {
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
	out.Expect(group, "server memory, bytes for each of JSON, 100,000 objects", report.Goal{AtMost: 2.5})
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
	defer growth.Close()
	p := points{out, side}
	for _, watchers := range size.Watchers {
		if err := p.events(ctx, growth, watchers, report.Point{Of: "watchers", At: float64(watchers)}); err != nil {
			return err
		}
	}
	until := time.Now().Add(size.Fill)
	if deadline, limited := ctx.Deadline(); limited && deadline.Add(-afterFill).Before(until) {
		until = deadline.Add(-afterFill)
	}
	for _, objects := range size.Objects {
		limited, cancel := context.WithDeadline(ctx, until)
		err := growth.Fill(limited, objects)
		cancel()
		if errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			out.Note("scale, %s: %d objects could not be created in time, so nothing was measured there", side, objects)
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.objects(ctx, growth, objects, size.Requests); err != nil {
			return err
		}
	}
	return nil
}

// points puts what a side needs on lines.
type points struct {
	out  *report.Report
	side report.Side
}

func (p points) add(at report.Point, line, unit string, value float64) {
	at.Line = line
	p.out.AddPoint(group, at, unit, p.side, value)
}

// events measures a stream of events to so many watchers.
func (p points) events(ctx context.Context, growth *server.Growth, watchers int, at report.Point) error {
	cost, lost, err := growth.Watch(ctx, watchers, 300)
	if err != nil {
		return err
	}
	p.add(at, "event, server CPU", "µs", cost.CPU)
	p.add(at, "event, lag p50", "ms", cost.P50)
	p.add(at, "event, lag p99", "ms", cost.P99)
	if lost > 0 {
		p.out.Note("scale, %s: %d events did not reach %d watchers", p.side, lost, watchers)
	}
	return nil
}

// objects measures memory, requests and events among so many objects.
func (p points) objects(ctx context.Context, growth *server.Growth, objects, requests int) error {
	at := report.Point{Of: "objects", At: float64(objects)}
	resident, perByte, err := growth.Memory(ctx)
	if err != nil {
		return err
	}
	p.add(at, "server memory, resident", "MB", resident/1e6)
	p.add(at, "server memory, bytes for each of JSON", "", perByte)
	for _, request := range server.Requests() {
		n := requests
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
		p.add(at, request+", server CPU", "µs", cost.CPU)
		p.add(at, request+", p50", "ms", cost.P50)
		p.add(at, request+", p99", "ms", cost.P99)
	}
	return p.events(ctx, growth, 1, at)
}

// measureRuntime runs a probe and puts what it says on lines.
func measureRuntime(ctx context.Context, out *report.Report, side report.Side, probe string, size Size) error {
	largest := size.Objects[len(size.Objects)-1]
	result, err := runtime.Probe[micro.Result](ctx, probe, "-growth", "-objects", fmt.Sprint(largest))
	if err != nil {
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
	return measureForms(ctx, points{out, side}, probe, size)
}

// measureForms measures the first sync of custom resources by Go type, without one,
// and of their metadata alone, each in a process of its own.
func measureForms(ctx context.Context, p points, probe string, size Size) error {
	for _, form := range micro.Forms() {
		for _, n := range size.Objects {
			result, err := runtime.Probe[micro.Result](ctx, probe, "-sync", form, "-objects", fmt.Sprint(n))
			if err != nil {
				return fmt.Errorf("sync of %d objects, %s: %w", n, form, err)
			}
			at := report.Point{Of: "objects", At: float64(n)}
			p.add(at, "first sync of items, "+form+": CPU of one", "µs", result["CPU"])
			p.add(at, "their live heap, "+form+": of one", "B", result["heap"])
			p.add(at, "their peak, "+form+": resident", "MB", result["peak"]/1e6)
		}
	}
	return nil
}
