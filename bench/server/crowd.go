// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

const (
	// few is the number of objects that a crowd is compared with.
	few = 1000
	// samples are the requests of one kind at either size.
	samples = 1000
	// quiet is how long a server has to come to rest before its memory is read.
	quiet = 5 * time.Second
)

// measureCrowd fills a fresh server with many objects, and tells how much memory
// they take and whether requests became slower than with a thousand.
func measureCrowd(ctx context.Context, add adder, subject Subject, objects int) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	clients := make([]*Client, 16)
	for i := range clients {
		clients[i] = instance.NewClient()
		defer clients[i].Close()
	}
	if _, err := prepare(ctx, clients[0]); err != nil {
		return err
	}
	idle := use(instance.PIDs)
	for _, size := range []struct{ from, to int }{{0, few}, {few, objects}} {
		_, err := drive(ctx, clients, size.to-size.from, func(ctx context.Context, c *Client, i int) error {
			return send(ctx, c, http.MethodPost, collection, jsonType, object(name("crowd", size.from+i), i))
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quiet):
		}
		if size.to == objects {
			one, err := clients[0].Do(ctx, http.MethodGet, path("crowd", 1), "", nil)
			if err != nil {
				return err
			}
			weight := float64(len(one)) * float64(objects)
			add(fmt.Sprintf("%d objects: resident memory", objects), "MB", report.Lower, use(instance.PIDs).resident/1e6)
			add(fmt.Sprintf("%d objects: resident memory per byte of JSON", objects), "", report.Lower, use(instance.PIDs).resident/weight)
			add(fmt.Sprintf("%d objects: growth per byte of JSON", objects), "", report.Lower, (use(instance.PIDs).resident-idle.resident)/weight)
		}
		if err := measureAmong(ctx, add, instance, clients, size.to); err != nil {
			return err
		}
	}
	return nil
}

// measureAmong measures single requests and events among many objects.
func measureAmong(ctx context.Context, add adder, instance *Instance, clients []*Client, objects int) error {
	who := fmt.Sprintf("%d objects", objects)
	for _, v := range []verb{
		{"get", 1, func(ctx context.Context, c *Client, _ string, i int) error {
			return send(ctx, c, http.MethodGet, path("crowd", i*(objects/samples)), "", nil)
		}},
		{"create", 1, func(ctx context.Context, c *Client, prefix string, i int) error {
			return send(ctx, c, http.MethodPost, collection, jsonType, object(name(prefix, i), i))
		}},
		{"merge patch", 1, func(ctx context.Context, c *Client, _ string, i int) error {
			return send(ctx, c, http.MethodPatch, path("crowd", i*(objects/samples)), mergeType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, i+objects))
		}},
	} {
		before := use(instance.PIDs)
		result, err := drive(ctx, clients[:1], samples, func(ctx context.Context, c *Client, i int) error {
			return v.work(ctx, c, fmt.Sprintf("more-%d", objects), i)
		})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", v.name, who, err)
		}
		add(who+": "+v.name+", median", "ms", report.Lower, result.percentile(0.5))
		add(who+": "+v.name+", p99", "ms", report.Lower, result.percentile(0.99))
		add(who+": "+v.name+", server CPU", "µs", report.Lower, float64((use(instance.PIDs).cpu-before.cpu).Microseconds())/samples)
	}
	seen, err := watchCrowd(ctx, instance, items(), 1, samples, 300)
	if err != nil {
		return err
	}
	lag := outcome{latencies: seen.lags}
	add(who+": watch lag p50", "ms", report.Lower, lag.percentile(0.5))
	add(who+": watch lag p99", "ms", report.Lower, lag.percentile(0.99))
	return nil
}
