// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
)

// Growth drives one server through growing numbers of objects and watchers, for
// group scale.
type Growth struct {
	instance *Instance
	load     load
	clients  []*Client
	done     func()
	// filled is how many objects have names in order, watched how many more there
	// are for watchers to see.
	filled, watched int
}

// Cost is what requests cost.
type Cost struct {
	// CPU is the server's, per request or per delivered event, in µs.
	CPU float64
	// P50 and P99 are seen by the client, in ms.
	P50, P99 float64
}

// NewGrowth defines the resource on a fresh server. Its objects have 2 KB.
func NewGrowth(ctx context.Context, instance *Instance) (*Growth, error) {
	return newGrowth(ctx, instance, items())
}

func newGrowth(ctx context.Context, instance *Instance, l load) (*Growth, error) {
	g := &Growth{instance: instance, load: l}
	g.clients, g.done = instance.NewClients(16)
	if _, err := prepare(ctx, g.clients[0]); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Close drops the connections.
func (g *Growth) Close() { g.done() }

// Fill creates objects until there are so many.
func (g *Growth) Fill(ctx context.Context, objects int) error {
	from := g.filled
	_, err := drive(ctx, g.clients, max(objects-from, 0), func(ctx context.Context, c *Client, i int) error {
		return send(ctx, c, http.MethodPost, collection, jsonType, g.load.object(name("item", from+i), from+i, ""))
	})
	g.filled = max(objects, from)
	return err
}

// Requests are what [Growth.Cost] can measure.
func Requests() []string { return []string{"create", "get", "patch", "page of 500"} }

// Cost measures n requests of a kind by 4 clients, spread over all objects.
func (g *Growth) Cost(ctx context.Context, request string, n int) (Cost, error) {
	some := func(i int) string { return path("item", i*7919%g.filled) }
	base := g.filled
	work := map[string]func(ctx context.Context, c *Client, i int) error{
		"create": func(ctx context.Context, c *Client, i int) error {
			return send(ctx, c, http.MethodPost, collection, jsonType, g.load.object(name("item", base+i), base+i, ""))
		},
		"get": func(ctx context.Context, c *Client, i int) error {
			return send(ctx, c, http.MethodGet, some(i), "", nil)
		},
		"patch": func(ctx context.Context, c *Client, i int) error {
			return send(ctx, c, http.MethodPatch, some(i), mergeType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, base+i))
		},
		"page of 500": func(ctx context.Context, c *Client, _ int) error {
			return send(ctx, c, http.MethodGet, collection+"?limit=500", "", nil)
		},
	}[request]
	if work == nil {
		return Cost{}, fmt.Errorf("no request %q", request)
	}
	before := use(g.instance.PIDs)
	result, err := drive(ctx, g.clients[:4], n, work)
	if err != nil {
		return Cost{}, fmt.Errorf("%s at %d objects: %w", request, g.filled, err)
	}
	if request == "create" {
		g.filled += n
	}
	spent := use(g.instance.PIDs).cpu - before.cpu
	return Cost{CPU: float64(spent.Microseconds()) / float64(n), P50: result.percentile(0.5), P99: result.percentile(0.99)}, nil
}

// Memory is what the server has resident once it has come to rest, in bytes, and
// that for each byte of the JSON of its objects.
func (g *Growth) Memory(ctx context.Context) (resident, perByte float64, err error) {
	if err := leave(ctx, quiet); err != nil {
		return 0, 0, err
	}
	one, err := g.clients[0].Do(ctx, http.MethodGet, path("item", 0), "", nil)
	if err != nil {
		return 0, 0, err
	}
	resident = use(g.instance.PIDs).resident
	return resident, resident / float64(len(one)*(g.filled+g.watched)), nil
}

// Watch measures so many watchers, each on a connection of its own, while so many
// writes happen; and counts the events that did not arrive.
func (g *Growth) Watch(ctx context.Context, watchers, writes int) (cost Cost, lost int, err error) {
	const perSecond = 150
	seen, err := watchCrowd(ctx, g.instance, g.load, watchers, writes, perSecond)
	if err != nil {
		return cost, 0, fmt.Errorf("%d watchers: %w", watchers, err)
	}
	g.watched += writes
	lag := outcome{latencies: seen.lags}
	cost = Cost{P50: lag.percentile(0.5), P99: lag.percentile(0.99)}
	if seen.delivered > 0 {
		cost.CPU = float64(seen.cpu.Microseconds()) / float64(seen.delivered)
	}
	return cost, seen.expected - seen.delivered, nil
}
