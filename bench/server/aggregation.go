// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

const aggregationGroup = "aggregation"

// AggregationScale says how much work a run of group aggregation does.
type AggregationScale struct {
	// Rounds is how often each side runs; the sides take turns.
	Rounds int
	// Gets is how many objects 16 clients get, and one client.
	Gets int
	// Events of a watch, and MB of a log, are sent as fast as can be.
	Events, LogMB int
	// Streams is how often each stream is sent.
	Streams int
}

// FullAggregation is the scale of published figures, QuickAggregation that of a look in between.
func FullAggregation() AggregationScale {
	return AggregationScale{Rounds: 3, Gets: 8000, Events: 40_000, LogMB: 256, Streams: 5}
}

// QuickAggregation is a tenth of it.
func QuickAggregation() AggregationScale {
	return AggregationScale{Rounds: 1, Gets: 800, Events: 4000, LogMB: 32, Streams: 3}
}

// RunAggregation measures what it adds to a request that a server passes it on to an aggregated
// API server, and what it takes from a stream: the same process behind both sides, asked
// through them and directly. A nil upstream is left out.
func RunAggregation(ctx context.Context, out *report.Report, log io.Writer, steer, upstream Subject, binary string, scale AggregationScale) (err error) {
	behind, err := startBackend(ctx, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, behind.stop()) }()
	bare, err := startBackend(ctx, binary, behind.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	for round := range out.Turns(ctx, aggregationGroup, scale.Rounds) {
		for _, side := range sides(steer, upstream) {
			fmt.Fprintf(log, "aggregation: round %d, %s\n", round+1, side.name)
			add := func(name, unit string, better report.Direction, value float64) {
				out.Add(aggregationGroup, name, unit, better, side.name, value)
			}
			if err := measureAggregation(ctx, add, side.subject, behind, bare, scale); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	for name, times := range map[string]float64{
		"get, 1 client: p50 that it adds": 2, "get, 16 clients: server CPU per request": 2,
		"watch: events per second": 1, "watch: server CPU per event": 1, "log: rate": 1, "log: server CPU per MB": 1,
	} {
		out.Expect(aggregationGroup, name, report.Goal{Times: times})
	}
	out.Note("aggregation: the same process is behind both sides, and is asked directly before and after; it, the server and the load generator share the processors. The bare proxy is net/http's, without a control plane")
	return nil
}

func measureAggregation(ctx context.Context, add adder, subject Subject, behind, bare *backend, scale AggregationScale) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	through, done := instance.NewClients(16)
	defer done()
	direct, closed := behind.clients(16)
	defer closed()
	proxied, closedBare := bare.clients(1)
	defer closedBare()
	if err := register(ctx, through[0], behind.address); err != nil {
		return err
	}
	get := func(ctx context.Context, c *Client, _ int) error {
		return send(ctx, c, http.MethodGet, proxiedItem, "", nil)
	}
	for _, clients := range [][]*Client{through, direct, proxied} { // connections are made, and code is warm
		if _, err := drive(ctx, clients, 1000, get); err != nil {
			return err
		}
	}
	if err := leave(ctx, quiet); err != nil {
		return err
	}
	if err := measureGets(ctx, add, instance, direct, through, proxied, scale.Gets, get); err != nil {
		return err
	}
	watch := flow{name: "watch", path: fmt.Sprintf("%s?watch=true&count=%d", proxiedCollection, scale.Events), units: float64(scale.Events), rate: "events per second", unit: "events/s", each: "event"}
	text := flow{name: "log", path: fmt.Sprintf("%s?count=%d", proxiedLog, scale.LogMB<<20/logPiece), units: float64(scale.LogMB), rate: "rate", unit: "MB/s", each: "MB"}
	for _, f := range []flow{watch, text} {
		if err := f.measure(ctx, add, instance, direct[0], through[0], scale.Streams); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// register has the server pass the version of the backend on to it, and returns when it does.
func register(ctx context.Context, c *Client, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if err := send(ctx, c, http.MethodPost, "/api/v1/namespaces/default/services", jsonType, fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"backend"},"spec":{"type":"ExternalName","externalName":%q}}`, host)); err != nil {
		return err
	}
	if err := send(ctx, c, http.MethodPost, "/apis/apiregistration.k8s.io/v1/apiservices", jsonType, fmt.Appendf(nil,
		`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.proxied.example.com"},"spec":{"group":"proxied.example.com","version":"v1",`+
			`"groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"backend","port":%s}}}`, port)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exchangeTimeout, errors.New("the version is not served after "+exchangeTimeout.String()))
	defer cancel()
	for {
		if send(ctx, c, http.MethodGet, proxiedItem, "", nil) == nil {
			return nil
		}
		if err := leave(ctx, 50*time.Millisecond); err != nil {
			return context.Cause(ctx)
		}
	}
}

// measureGets compares gets through the server, and through the bare proxy, with gets of the backend
// before and after them.
func measureGets(ctx context.Context, add adder, instance *Instance, direct, through, proxied []*Client, gets int, get func(context.Context, *Client, int) error) error {
	var medians []float64
	for _, clients := range [][]*Client{direct[:1], through[:1], direct[:1], proxied, direct[:1]} {
		result, err := drive(ctx, clients, gets, get)
		if err != nil {
			return err
		}
		medians = append(medians, result.percentile(0.5))
	}
	add("get, 1 client: p50 of the backend", "ms", report.Lower, medians[2])
	add("get, 1 client: p50 that it adds", "ms", report.Lower, medians[1]-(medians[0]+medians[2])/2)
	add("get, 1 client: p50 that a bare proxy adds", "ms", report.Lower, medians[3]-(medians[2]+medians[4])/2)
	before := use(instance.PIDs)
	result, err := drive(ctx, through, gets, get)
	if err != nil {
		return err
	}
	cpu := use(instance.PIDs).cpu - before.cpu
	add("get, 16 clients", "ops/s", report.Higher, result.rate)
	add("get, 16 clients: server CPU per request", "µs", report.Lower, float64(cpu.Nanoseconds())/1000/float64(gets))
	return nil
}

// flow is a stream that the backend sends as fast as it is read.
type flow struct {
	name, path string
	// units are what is counted in it: so many, and the name of one. rate is the name of the
	// metric, unit its unit.
	units            float64
	rate, unit, each string
}

// measure reads the stream from the backend and through the server, in turn.
func (f flow) measure(ctx context.Context, add adder, instance *Instance, direct, through *Client, times int) error {
	var rates, without, spent []float64
	size := 0
	for range times {
		for _, c := range []*Client{direct, through} {
			before, begin := use(instance.PIDs), time.Now()
			n, err := c.Drain(ctx, f.path)
			if err != nil {
				return err
			}
			rate := f.units / time.Since(begin).Seconds()
			if size == 0 {
				size = n
			}
			if n != size || n == 0 {
				return fmt.Errorf("%d bytes came, and %d directly", n, size)
			}
			if c == direct {
				without = append(without, rate)
				continue
			}
			rates = append(rates, rate)
			spent = append(spent, float64((use(instance.PIDs).cpu-before.cpu).Nanoseconds())/1000/f.units)
		}
	}
	add(f.name+": "+f.rate+" of the backend", f.unit, report.Higher, report.Median(without))
	add(f.name+": "+f.rate, f.unit, report.Higher, report.Median(rates))
	add(f.name+": server CPU per "+f.each, "µs", report.Lower, report.Median(spent))
	return nil
}
