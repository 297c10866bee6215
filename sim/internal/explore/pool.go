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

// pool makes runs, side by side in as many processes.
type pool struct {
	test  string
	size  int
	usual worker.Request

	mu   sync.Mutex
	idle []*worker.Process
}

// get returns a process that waits for a run; fresh asks for one that has made none.
func (p *pool) get(fresh bool) (*worker.Process, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 && !fresh {
		out := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return out, nil
	}
	p.mu.Unlock()
	return worker.Start(p.test)
}

func (p *pool) put(w *worker.Process) {
	p.mu.Lock()
	if len(p.idle) < p.size {
		p.idle = append(p.idle, w)
		w = nil
	}
	p.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// run makes one run; fresh asks for a process that has made none.
func (p *pool) run(ctx context.Context, what plan.Plan, fresh, log bool) (worker.Answer, error) {
	w, err := p.get(fresh)
	if err != nil {
		return worker.Answer{}, err
	}
	r := p.usual
	r.Plan, r.Limits.Log = what, log
	answer, alive, err := w.Run(ctx, r)
	if alive {
		p.put(w)
	}
	return answer, err
}

// each makes runs of plans and hands each answer on, in any order, one at a time. It stops
// early when ctx ends, and returns how many it has made, and which were cut off. The error is
// that of a process.
func (p *pool) each(ctx context.Context, plans []plan.Plan, handle func(i int, a worker.Answer)) (made int, cut []int, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil || next == len(plans) || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range p.size {
		running.Go(func() {
			for {
				i, ok := take()
				if !ok {
					return
				}
				a, failed := p.run(ctx, plans[i], false, false)
				mu.Lock()
				switch {
				case failed != nil && ctx.Err() == nil:
					err = failed
				case failed != nil:
					cut = append(cut, i)
				default:
					made++
					handle(i, a)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return made, cut, err
}

// close ends all processes.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		w.Stop()
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
