// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// The sizes at which costs are measured.
func (Growth) sizes() (controllers, objects []int) {
	return []int{1, 10, 50}, []int{1000, 10_000, 100_000}
}

// Growth measures how costs grow with controllers and with cached objects. Objects,
// if set, is the largest number of them.
type Growth struct{ Objects int }

// Measure runs everything once. The names of the result end in ", N controllers" or
// ", N objects".
func (g Growth) Measure(ctx context.Context, side Side, process func() time.Duration) (Result, error) {
	m := &measurement{side: side, process: process, out: Result{}}
	controllers, objects := g.sizes()
	for _, n := range controllers {
		if err := within(ctx, func(ctx context.Context) error { return m.controllers(ctx, n) }); err != nil {
			return nil, fmt.Errorf("%d controllers: %w", n, err)
		}
	}
	for _, n := range objects {
		if g.Objects > 0 && n > g.Objects {
			continue
		}
		if err := within(ctx, func(ctx context.Context) error { return m.cached(ctx, n) }); err != nil {
			return nil, fmt.Errorf("%d objects: %w", n, err)
		}
	}
	return m.out, nil
}

func within(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return step(ctx)
}

// controllers measures what an event costs that n controllers reconcile, each after
// reading the object: divided by n, and the live heap of one controller.
func (m *measurement) controllers(ctx context.Context, n int) error {
	const objects, events = 200, 400
	server, err := newCanned(builtin, objects, false)
	if err != nil {
		return err
	}
	var seen, want atomic.Int64
	done := make(chan struct{}, 1)
	want.Store(int64(objects * n))
	before := liveHeap()
	err = m.side.Controllers(ctx, config(server), n, func() {
		if seen.Add(1) == want.Load() {
			done <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	<-done
	m.out[fmt.Sprintf("heap, %d controllers", n)] = (liveHeap() - before) / 1e6
	version := revision
	alone := func(count int) error { // one event after the other, so that none is merged
		for range count {
			version++
			frame, err := server.frame("MODIFIED", builtin.object(version%objects, version, false))
			if err != nil {
				return err
			}
			want.Add(int64(n))
			server.live <- frame
			<-done
		}
		return nil
	}
	if err := alone(events / 4); err != nil { // warm
		return err
	}
	s, err := m.spend(func() error { return alone(events) })
	m.out[fmt.Sprintf("reconcile CPU, %d controllers", n)] = float64(s.cpu.Nanoseconds()) / float64(events*n) / 1000
	runtime.KeepAlive(server)
	return err
}

// cached measures a cache of n small Pods: its first sync and live heap for each,
// and what an event and a get cost then.
func (m *measurement) cached(ctx context.Context, n int) error {
	server, err := newCanned(builtin, n, true)
	if err != nil {
		return err
	}
	var seen, want atomic.Int64
	done := make(chan struct{}, 1)
	before := liveHeap()
	var reads Reads
	s, err := m.spend(func() (err error) {
		reads, err = m.side.Cache(ctx, config(server), builtin.blank(), 0, func() {
			if seen.Add(1) == want.Load() {
				done <- struct{}{}
			}
		})
		return err
	})
	if err != nil {
		return err
	}
	m.out[fmt.Sprintf("sync CPU, %d objects", n)] = float64(s.cpu.Nanoseconds()) / float64(n) / 1000
	m.out[fmt.Sprintf("heap, %d objects", n)] = (liveHeap() - before) / float64(n)
	const events, gets = 2000, 5000
	var frames [][]byte
	for i := range events {
		frame, err := server.frame("MODIFIED", builtin.object(i*7919%n, revision+1+i, true))
		if err != nil {
			return err
		}
		frames = append(frames, frame)
	}
	want.Store(events)
	s, err = m.spend(func() error {
		for _, frame := range frames {
			server.live <- frame
		}
		<-done
		return nil
	})
	if err != nil {
		return err
	}
	m.out[fmt.Sprintf("event CPU, %d objects", n)] = float64(s.cpu.Nanoseconds()) / events / 1000
	s, err = m.repeat(gets, reads.Get)
	m.out[fmt.Sprintf("get CPU, %d objects", n)] = float64(s.cpu.Nanoseconds()) / gets / 1000
	runtime.KeepAlive(server)
	return err
}
