// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// CPUScale says how server CPU is measured.
type CPUScale struct {
	// Pairs is how often each request is measured on both servers, which take turns.
	Pairs int
	// Requests of one measurement, and objects of each kind.
	Requests int
	// Selects tells which requests are measured, by their names such as "pod create".
	Selects func(name string) bool
}

// CPUPairs is what requests of one name cost two servers, in CPU time, user and system, per
// request; of a list per object, and of a watch per event.
type CPUPairs struct {
	Name         string
	Base, Change []time.Duration
}

// Ratios returns what the change costs of what the base costs, pair by pair, sorted.
func (p CPUPairs) Ratios() []float64 {
	out := make([]float64, len(p.Base))
	for i := range out {
		out[i] = float64(p.Change[i]) / float64(p.Base[i])
	}
	slices.Sort(out)
	return out
}

// cpuClients send the requests of a measurement.
const cpuClients = 4

// cpuWatchers are sent the events of the requests named watch.
const cpuWatchers = 10

// CompareCPU measures what requests of the usual kinds cost a base and a change, over TLS,
// in pairs: both servers run, one works at a time, and every second pair begins with the
// change.
func CompareCPU(ctx context.Context, base, change Subject, scale CPUScale, log io.Writer) ([]CPUPairs, error) {
	var sides [2]*cpuSide
	for i, subject := range []Subject{base, change} {
		instance, err := subject.Start(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = instance.Stop() }() // what it did is measured
		side := &cpuSide{instance: instance, scale: scale}
		clients, done := instance.NewClients(cpuClients)
		defer done()
		side.clients = clients
		if err := side.define(ctx); err != nil {
			return nil, err
		}
		sides[i] = side
	}
	var out []CPUPairs
	for _, k := range cpuKinds() {
		for _, r := range k.requests() {
			name := k.name + " " + r.name
			if !scale.Selects(name) {
				continue
			}
			pairs := CPUPairs{Name: name, Base: make([]time.Duration, scale.Pairs), Change: make([]time.Duration, scale.Pairs)}
			for i, side := range sides {
				if err := side.fill(ctx, k); err != nil {
					return nil, fmt.Errorf("objects of %s, server %d: %w", k.name, i, err)
				}
				if _, err := side.measure(ctx, k, r); err != nil { // pools and connections are filled
					return nil, fmt.Errorf("%s, server %d: %w", name, i, err)
				}
			}
			for pair := range scale.Pairs {
				for turn := range sides {
					i := (turn + pair) % 2
					cost, err := sides[i].measure(ctx, k, r)
					if err != nil {
						return nil, fmt.Errorf("%s, server %d: %w", name, i, err)
					}
					pairs.at(i)[pair] = cost
				}
			}
			fmt.Fprintln(log, name)
			out = append(out, pairs)
		}
	}
	return out, nil
}

func (p *CPUPairs) at(side int) []time.Duration {
	if side == 0 {
		return p.Base
	}
	return p.Change
}

// cpuSide is one of the servers that are compared.
type cpuSide struct {
	instance *Instance
	clients  []*Client
	scale    CPUScale
	filled   map[string]bool
	// turn numbers the measurements, so that every one changes something.
	turn int
}

func (s *cpuSide) define(ctx context.Context) error {
	s.filled = map[string]bool{}
	if _, err := prepare(ctx, s.clients[0]); err != nil {
		return err
	}
	return send(ctx, s.clients[0], http.MethodDelete, collection+"/first", "", nil)
}

// fill creates the objects of a kind that are changed and listed, each with managedFields of
// its creator, of one who applies it and, if the kind has one, of one who writes its status.
func (s *cpuSide) fill(ctx context.Context, k cpuKind) error {
	if s.filled[k.name] {
		return nil
	}
	s.filled[k.name] = true
	if err := s.connect(ctx); err != nil {
		return err
	}
	_, err := drive(ctx, s.clients, s.scale.Requests, func(ctx context.Context, c *Client, i int) error {
		if err := send(ctx, c, http.MethodPost, k.collection, jsonType, k.object(name("there", i), i, "")); err != nil {
			return err
		}
		if k.status != "" {
			if err := send(ctx, c, http.MethodPatch, k.at(i)+"/status", mergeType, fmt.Appendf(nil, k.status, 0)); err != nil {
				return err
			}
		}
		return send(ctx, c, http.MethodPatch, k.at(i)+cpuApplies, applyType, k.applied(i, 0))
	})
	return err
}

// connect opens the connections of the clients anew: the server closes those that were idle
// while the other one worked, and what it costs to open one is no part of a request.
func (s *cpuSide) connect(ctx context.Context) error {
	for _, c := range s.clients {
		c.Close()
		if err := send(ctx, c, http.MethodGet, "/readyz", "", nil); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the CPU time of one request, of an object in a list, or of an event.
func (s *cpuSide) measure(ctx context.Context, k cpuKind, r cpuRequest) (time.Duration, error) {
	s.turn++
	if r.watch != nil {
		l := load{k.collection, r.watch.accept, r.watch.split, k.object}
		seen, err := watchCrowd(ctx, s.instance, l, cpuWatchers, s.scale.Requests, 500)
		if err == nil && seen.delivered != seen.expected {
			err = fmt.Errorf("%d of %d events came", seen.delivered, seen.expected)
		}
		return seen.cpu / time.Duration(max(1, seen.expected)), err
	}
	if err := s.connect(ctx); err != nil {
		return 0, err
	}
	bodies := make([][]byte, s.scale.Requests)
	if r.before != nil {
		if _, err := drive(ctx, s.clients, s.scale.Requests, func(ctx context.Context, c *Client, i int) (err error) {
			bodies[i], err = r.before(ctx, c, k, i, s.turn)
			return err
		}); err != nil {
			return 0, err
		}
	}
	requests, each := s.scale.Requests, s.scale.Requests
	if r.lists > 0 {
		requests, each = r.lists, r.lists*s.scale.Requests
	}
	before := use(s.instance.PIDs).cpu
	_, err := drive(ctx, s.clients, requests, func(ctx context.Context, c *Client, i int) error {
		return r.work(ctx, c, k, i, s.turn, bodies[i%len(bodies)])
	})
	return (use(s.instance.PIDs).cpu - before) / time.Duration(each), err
}

// cpuApplies are the options of an apply.
const cpuApplies = "?fieldManager=bench&force=true"

// cpuRequest is a request that is measured.
type cpuRequest struct {
	name string
	// before is done with each object before the measurement; it returns the body for work.
	before func(ctx context.Context, c *Client, k cpuKind, i, turn int) ([]byte, error)
	work   func(ctx context.Context, c *Client, k cpuKind, i, turn int, body []byte) error
	// lists is how many lists of all objects are measured. 0: it is no list.
	lists int
	// watch has the form in which events are sent; nil: it is no watch.
	watch *load
}

// patched changes an object, so that nothing is cached for it.
func patched(ctx context.Context, c *Client, k cpuKind, i, turn int) ([]byte, error) {
	return nil, send(ctx, c, http.MethodPatch, k.at(i), mergeType, fmt.Appendf(nil, k.change, turn))
}

// requests are those of a kind, in the order in which they are measured.
func (k cpuKind) requests() []cpuRequest {
	patch := func(path, kind string, body func(k cpuKind, i, turn int) []byte) func(context.Context, *Client, cpuKind, int, int, []byte) error {
		return func(ctx context.Context, c *Client, k cpuKind, i, turn int, _ []byte) error {
			return send(ctx, c, http.MethodPatch, k.at(i)+path, kind, body(k, i, turn))
		}
	}
	list := func(accept string) func(context.Context, *Client, cpuKind, int, int, []byte) error {
		return func(ctx context.Context, c *Client, k cpuKind, _, _ int, _ []byte) error {
			c.accept = accept
			defer func() { c.accept = jsonType }()
			_, err := c.Drain(ctx, k.collection+"?labelSelector=bench.example.com/there")
			return err
		}
	}
	out := []cpuRequest{
		{name: "create", work: func(ctx context.Context, c *Client, k cpuKind, i, turn int, _ []byte) error {
			return send(ctx, c, http.MethodPost, k.collection, jsonType, k.object(fmt.Sprintf("new-%d-%06d", turn, i), i, ""))
		}},
		{name: "update", before: func(ctx context.Context, c *Client, k cpuKind, i, turn int) ([]byte, error) {
			if _, err := patched(ctx, c, k, i, turn); err != nil {
				return nil, err
			}
			text, err := c.Do(ctx, http.MethodGet, k.at(i), "", nil)
			return bytes.Replace(text, fmt.Appendf(nil, k.changed, turn), fmt.Appendf(nil, k.changed, turn+100_000), 1), err
		}, work: func(ctx context.Context, c *Client, k cpuKind, i, _ int, body []byte) error {
			return send(ctx, c, http.MethodPut, k.at(i), jsonType, body)
		}},
		{name: "merge patch", work: patch("", mergeType, func(k cpuKind, _, turn int) []byte { return fmt.Appendf(nil, k.change, turn) })},
	}
	if k.status != "" {
		out = append(out, cpuRequest{name: "status patch", work: patch("/status", mergeType, func(k cpuKind, _, turn int) []byte { return fmt.Appendf(nil, k.status, turn) })})
	}
	out = append(out,
		cpuRequest{name: "apply", work: patch(cpuApplies, applyType, cpuKind.applied)},
		cpuRequest{name: "list", lists: 40, work: list(jsonType)},
		cpuRequest{name: "watch", watch: &load{accept: jsonType, split: scanLines}},
	)
	if k.protobuf {
		out = append(out,
			cpuRequest{name: "list, protobuf", lists: 40, work: list(protobufType)},
			cpuRequest{name: "first list, protobuf", lists: 1, before: patched, work: list(protobufType)},
			cpuRequest{name: "watch, protobuf", watch: &load{accept: protobufWatchType, split: scanFrames}},
		)
	}
	return out
}
