// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"maps"

	"github.com/steer-dev/steer/bench/report"
	"github.com/steer-dev/steer/bench/runtime/micro"
)

// line shows a result of package micro in the table, beside its goal.
type line struct {
	key, name, unit string
	goal            report.Goal
}

func lines() []line {
	times := func(factor float64) report.Goal { return report.Goal{Times: factor} }
	atMost := func(limit float64) report.Goal { return report.Goal{AtMost: limit} }
	return []line{
		{"sync CPU, JSON", "initial sync, objects of 8 KB, JSON: CPU", "ms", times(3)},
		{"sync CPU, protobuf", "initial sync, protobuf: CPU", "ms", times(1 / 0.8)},
		{"sync heap, JSON", "live heap after it, JSON", "MB", times(4.0 / 3)},
		{"sync heap, protobuf", "live heap after it, protobuf", "MB", times(4.0 / 3)},
		{"sync heap, compact", "the same with cache.Options.Compact", "MB", times(3)},
		{"event CPU, JSON", "watch event to handler, JSON: CPU", "µs", times(4)},
		{"event CPU, protobuf", "watch event to handler, protobuf: CPU", "µs", times(1 / 0.8)},
		{"hand-offs, JSON", "goroutines woken by it, JSON", "", atMost(2)},
		{"hand-offs, protobuf", "goroutines woken by it, protobuf", "", atMost(2)},
		{"queue CPU, 0", "queue add, get, done: CPU", "µs", atMost(0.5)},
		{"queue allocs, 0", "queue add, get, done: allocations", "", atMost(1)},
		{"queue CPU, 10000", "the same, 10,000 waiting: CPU", "µs", atMost(0.5)},
		{"queue allocs, 10000", "the same, 10,000 waiting: allocations", "", atMost(1)},
		{"reconcile CPU", "empty reconcile: CPU", "µs", times(2)},
		{"recorder CPU", "flight recorder, of it", "µs", atMost(0.5)},
		{"recorder allocs", "flight recorder, of it: allocations", "", atMost(0.05)},
		{"status write CPU", "reconcile with one status write: CPU", "µs", report.Goal{}},
		{"status write recorder CPU", "flight recorder, of that reconcile: CPU", "µs", report.Goal{}},
		{"status write recorder share", "flight recorder, of that reconcile", "%", atMost(1)},
		{"idle goroutines", "manager at rest, one controller: goroutines", "", times(2)},
		{"idle anonymous", "manager at rest, one controller: anonymous memory", "MB", times(2)},
		{"idle wake", "the first change after the rest: to its reconcile", "µs", report.Goal{}},
		{"idle wake faults", "the first change after the rest: minor page faults", "", report.Goal{}},
		{"get allocs", "cached get, a copy: allocations", "", report.Goal{}},
		{"get bytes", "cached get, a copy: bytes", "B", report.Goal{}},
		{"list allocs", "cached list, copies: allocations", "", report.Goal{}},
		{"list bytes", "cached list, copies: bytes", "B", report.Goal{}},
		{"iterate allocs", "iterator against controller-runtime's list: allocations", "", times(20)},
		{"1 indexes", "one index: its CPU per update", "µs", report.Goal{}},
		{"5 indexes", "five indexes: their CPU per update", "µs", times(4)},
		{"update CPU, 5 indexes", "update of a small object with five: CPU", "µs", report.Goal{}},
	}
}

// steps measures single steps.
func steps(ctx context.Context, out *report.Report, side report.Side, binary, kubeconfig string, objects int) error {
	result, err := Probe[micro.Result](ctx, binary, "-micro", "-objects", fmt.Sprint(objects))
	if err != nil {
		return err
	}
	idle, err := Probe[micro.Result](ctx, binary, "-idle")
	if err != nil {
		return err
	}
	maps.Copy(result, idle)
	recorded, err := Probe[micro.Result](ctx, binary, "-record", "-kubeconfig", kubeconfig)
	if err != nil {
		return err
	}
	maps.Copy(result, recorded)
	for _, l := range lines() {
		if value, measured := result[l.key]; measured {
			out.Add(group, l.name, l.unit, report.Lower, side, value)
		}
	}
	return nil
}

// expect sets the goals of the group.
func expect(out *report.Report) {
	for _, l := range lines() {
		out.Expect(group, l.name, l.goal)
	}
	out.Expect(group, failover, report.Goal{AtMost: 1000})
	out.Expect(group, firstReconcile, report.Goal{AtMost: 15})
}
