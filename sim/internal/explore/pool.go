// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"sync"

	"github.com/steer-dev/steer/sim/internal/engine"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/worker"
)

// pool makes runs, side by side in as many processes as it has places for.
type pool struct {
	test   string
	usual  worker.Request
	places *Places
	// notes of the plans that run.
	notes Follower

	mu   sync.Mutex
	idle []*worker.Process
	has  int // processes
}

// get returns a process that waits for a run, or starts one once there is a place for it;
// fresh asks for one that has made no run.
func (p *pool) get(ctx context.Context, fresh bool) (*worker.Process, error) {
	w := p.pop()
	switch {
	case w != nil && !fresh:
		return w, nil
	case w == nil:
		if err := p.places.take(ctx); err != nil {
			return nil, err
		}
		p.count(1)
	case p.places.try(): // there is room for both
		p.count(1)
		p.put(w)
	default:
		w.Stop() // the new one has its place
	}
	w, err := worker.Start(p.test)
	if err != nil {
		p.lose()
	}
	return w, err
}

// pop takes a process that waits for a run; nil if there is none.
func (p *pool) pop() *worker.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	w := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return w
}

// count adds to the number of processes, and returns it.
func (p *pool) count(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has += n
	return p.has
}

// put keeps a process for another run, unless its place is needed elsewhere.
func (p *pool) put(w *worker.Process) {
	if p.places.crowded(p.count(0)) {
		w.Stop()
		p.lose()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, w)
}

// lose gives back the place of a process that has ended.
func (p *pool) lose() {
	p.count(-1)
	p.places.give()
}

// run makes one run; fresh asks for a process that has made none.
func (p *pool) run(ctx context.Context, what plan.Plan, fresh, log bool) (worker.Answer, error) {
	w, err := p.get(ctx, fresh)
	if err != nil {
		return worker.Answer{}, err
	}
	return p.with(ctx, w, what, log)
}

// with makes one run in a process that get has returned.
func (p *pool) with(ctx context.Context, w *worker.Process, what plan.Plan, log bool) (worker.Answer, error) {
	r := p.usual
	r.Plan, r.Limits.Log = what, log
	p.notes.Begins(what)
	answer, alive, err := w.Run(ctx, r)
	if ctx.Err() == nil { // one that is cut off has begun, and no more
		p.notes.Over(what)
	}
	if alive {
		p.put(w)
	} else {
		p.lose()
	}
	return answer, err
}

// each makes runs of plans and hands each answer on, in any order, one at a time. It stops
// early when ctx ends, and returns how many it has made, and which were cut off. The error is
// that of a process.
func (p *pool) each(ctx context.Context, plans []plan.Plan, handle func(i int, a worker.Answer)) (made int, cut []int, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil || next == len(plans) || ctx.Err() != nil {
			enough() // no goroutine needs to wait for a place
			return 0, false
		}
		next++
		return next - 1, true
	}
	work := func() error {
		for {
			w, err := p.get(waiting, false)
			if err != nil {
				if waiting.Err() == nil {
					return err
				}
				return nil // there is nothing left to wait for
			}
			i, ok := take()
			if !ok {
				p.put(w)
				return nil
			}
			a, err := p.with(ctx, w, plans[i], false)
			mu.Lock()
			switch {
			case err == nil:
				made++
				handle(i, a)
			case ctx.Err() != nil:
				cut = append(cut, i)
			}
			mu.Unlock()
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // cut tells what was cut off
			case err != nil:
				return err
			}
		}
	}
	for range min(p.places.most(), len(plans)) {
		running.Go(func() {
			if failed := work(); failed != nil {
				mu.Lock()
				err = failed
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return made, cut, err
}

// close ends all processes.
func (p *pool) close() {
	for w := p.pop(); w != nil; w = p.pop() {
		w.Stop()
		p.lose()
	}
}

// seen are the writes of a run for plans.
func seen(r engine.Record) []plan.Seen {
	out := make([]plan.Seen, len(r.Writes))
	for i, w := range r.Writes {
		out[i] = w.Seen
	}
	return out
}
