// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

// Scale says how much work a run does.
type Scale struct {
	// Rounds is how often each side runs; the sides take turns.
	Rounds int
	// Objects is how many objects 16 clients create; one client creates a
	// twentieth of it.
	Objects int
	// Writes is how many writes a crowd of watchers sees.
	Writes int
}

// Full is the scale of published figures, Quick that of a look in between.
func Full() Scale { return Scale{Rounds: 3, Objects: 4000, Writes: 900} }

// Quick is a tenth of it, once.
func Quick() Scale { return Scale{Rounds: 1, Objects: 400, Writes: 150} }

const group = "server"

// side is one of the two that are compared.
type side struct {
	name    report.Side
	subject Subject
}

// sides are those that there are, in the order in which they are measured.
func sides(steer, upstream Subject) []side {
	there := []side{{report.Steer, steer}, {report.Upstream, upstream}}
	return slices.DeleteFunc(there, func(s side) bool { return s.subject == nil })
}

// Run measures both sides in turn and adds what it saw to the report. A nil
// upstream is left out.
func Run(ctx context.Context, out *report.Report, log io.Writer, steer, upstream Subject, scale Scale) error {
	for round := range out.Turns(ctx, group, scale.Rounds) {
		for _, side := range sides(steer, upstream) {
			fmt.Fprintf(log, "server: round %d, %s\n", round+1, side.name)
			if err := measure(ctx, out, side.name, side.subject, scale); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	expect(out, scale)
	return nil
}

func measure(ctx context.Context, out *report.Report, side report.Side, subject Subject, scale Scale) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	add := func(name, unit string, better report.Direction, value float64) {
		out.Add(group, name, unit, better, side, value)
	}
	add("start to /readyz", "ms", report.Lower, instance.Ready.Seconds()*1000)

	clients, done := instance.NewClients(16)
	defer done()
	if err := leave(ctx, quiet); err != nil {
		return err
	}
	idle := use(instance.PIDs)
	add("idle memory, resident", "MB", report.Lower, idle.resident/1e6)
	add("idle memory, anonymous", "MB", report.Lower, idle.anonymous/1e6)
	first, err := prepare(ctx, clients[0])
	if err != nil {
		return err
	}
	add("CRD to first object", "ms", report.Lower, first.Seconds()*1000)

	warm := func(ctx context.Context, c *Client, i int) error {
		return send(ctx, c, http.MethodGet, collection+"/first", "", nil)
	}
	if _, err := drive(ctx, clients, 200, warm); err != nil {
		return err
	}
	if err := measureVerbs(ctx, add, instance, clients[:1], "1 client", max(scale.Objects/20, 20)); err != nil {
		return err
	}
	if err := measureDurability(ctx, add, clients[0], max(scale.Objects/20, 20)); err != nil {
		return err
	}
	if err := measureVerbs(ctx, add, instance, clients, "16 clients", scale.Objects); err != nil {
		return err
	}
	for _, watchers := range []int{1, 20, 200} {
		if err := measureWatch(ctx, add, instance, items(), fmt.Sprintf("%d watchers", watchers), watchers, scale.Writes); err != nil {
			return err
		}
	}
	add("memory after the load, resident", "MB", report.Lower, use(instance.PIDs).resident/1e6)
	return nil
}

// quiet is how long a server has to come to rest, after its start and after a load,
// before its memory is read.
const quiet = 5 * time.Second

// leave leaves a server alone.
func leave(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}

type adder func(name, unit string, better report.Direction, value float64)

func measureVerbs(ctx context.Context, add adder, instance *Instance, clients []*Client, who string, objects int) error {
	prefix := fmt.Sprintf("c%d", len(clients))
	for _, v := range verbs() {
		if v.name == "delete" { // the lists see all objects
			if err := measureLists(ctx, add, clients, who, objects); err != nil {
				return err
			}
		}
		n := max(int(float64(objects)*v.share), 1)
		before, own := use(instance.PIDs), use([]int{os.Getpid()})
		result, err := drive(ctx, clients, n, func(ctx context.Context, c *Client, i int) error {
			return v.work(ctx, c, prefix, i)
		})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", v.name, who, err)
		}
		if len(clients) == 1 {
			add(v.name+", "+who+", median", "ms", report.Lower, result.percentile(0.5))
			continue
		}
		add(v.name+", "+who, "ops/s", report.Higher, result.rate)
		add(v.name+", "+who+", p99", "ms", report.Lower, result.percentile(0.99))
		perRequest := func(cpu time.Duration) float64 { return float64(cpu.Microseconds()) / float64(n) }
		add(v.name+", "+who+", server CPU per request", "µs", report.Lower, perRequest(use(instance.PIDs).cpu-before.cpu))
		add(v.name+", "+who+", load generator's CPU per request", "µs", report.Lower, perRequest(use([]int{os.Getpid()}).cpu-own.cpu))
	}
	return nil
}

func measureLists(ctx context.Context, add adder, clients []*Client, who string, objects int) error {
	for _, list := range []struct{ name, query string }{
		{fmt.Sprintf("list of %d", objects), "?resourceVersion=0"},
		{fmt.Sprintf("consistent list of %d", objects), ""},
		{fmt.Sprintf("label list in %d", objects), "?labelSelector=shard%3Ds3"},
	} {
		result, err := drive(ctx, clients, max(len(clients), 5), func(ctx context.Context, c *Client, _ int) error {
			_, err := c.Drain(ctx, collection+list.query)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", list.name, who, err)
		}
		add(list.name+", "+who+", median", "ms", report.Lower, result.percentile(0.5))
	}
	return nil
}

// pacePerSecond is how many writes a crowd of watchers sees in a second.
const pacePerSecond = 300

func measureWatch(ctx context.Context, add adder, instance *Instance, l load, who string, watchers, writes int) error {
	seen, err := watchCrowd(ctx, instance, l, watchers, writes, pacePerSecond)
	if err != nil {
		return fmt.Errorf("%s: %w", who, err)
	}
	lag := outcome{latencies: seen.lags}
	add(who+": events not delivered", "", report.Lower, float64(seen.expected-seen.delivered))
	add(who+": lag p50", "ms", report.Lower, lag.percentile(0.5))
	add(who+": lag p99", "ms", report.Lower, lag.percentile(0.99))
	if seen.delivered > 0 {
		add(who+": server CPU per event", "µs", report.Lower, float64(seen.cpu.Microseconds())/float64(seen.delivered))
	}
	add(who+": writes reached", "ops/s", report.Higher, seen.rate)
	if instance.Bare == "" || seen.delivered == 0 {
		return nil
	}
	cpu, err := bareCrowd(ctx, instance.Bare, seen.bytes/seen.delivered, watchers, writes, pacePerSecond)
	if err != nil {
		return fmt.Errorf("%s, bare server: %w", who, err)
	}
	add(who+": CPU per event of the bare server", "µs", report.Lower, float64(cpu.Microseconds())/float64(watchers*writes))
	return nil
}
