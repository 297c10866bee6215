// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// Places bound how many worker processes explorations have that go on side by side, such as
// those of parallel tests: each process has a place, whether it runs or waits for a run.
// Who waits longest is served first. The zero value has one place for each processor, and at
// most mostPlaces.
type Places struct {
	// Most is how many there are; 0 for the usual number.
	Most int

	mu      sync.Mutex
	taken   int
	sharing int // explorations
	waiting []chan struct{}
}

// mostPlaces bounds the memory of workers: each has some 60 MiB.
const mostPlaces = 8

// places are those of this process.
var places Places

func (p *Places) most() int {
	if p.Most > 0 {
		return p.Most
	}
	return min(runtime.GOMAXPROCS(0), mostPlaces)
}

// share counts one more exploration, until leave is called.
func (p *Places) share() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sharing++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sharing--
	}
}

// try takes a place if there is one, and none waits for it.
func (p *Places) try() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most() || len(p.waiting) > 0 {
		return false
	}
	p.taken++
	return true
}

// take waits for a place.
func (p *Places) take(ctx context.Context) error {
	if p.try() {
		return nil
	}
	given := make(chan struct{})
	p.mu.Lock()
	p.waiting = append(p.waiting, given)
	p.serveLocked()
	p.mu.Unlock()
	select {
	case <-given:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, given)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 { // it was given meanwhile
		p.give()
	}
	return context.Cause(ctx)
}

// give gives a place back.
func (p *Places) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.serveLocked()
}

func (p *Places) serveLocked() {
	for p.taken < p.most() && len(p.waiting) > 0 {
		p.taken++
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}

// crowded reports whether an exploration that has so many places should give one back: others
// wait for one, and it has more than its share.
func (p *Places) crowded(has int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0 && has > max(1, p.most()/max(1, p.sharing))
}
