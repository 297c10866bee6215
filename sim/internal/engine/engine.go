// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs a test once as a plan says: it crashes the operator, loses answers
// and has the API server fail at the writes that the plan names, and records what comes of
// it.
//
// A crash is a fence at the wire, since goroutines cannot be killed: from one write on,
// nothing that this start of the operator sends is sent, and its context ends. Once all of
// it has returned, the operator starts anew.
package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/sim/internal/gate"
	"github.com/steer-dev/steer/sim/internal/plan"
)

// errCrashed is what an operator gets from its requests after it crashed.
var errCrashed = errors.New("sim: the operator has crashed: nothing is sent any more")

// entropySeed is that of what is random in the environment, in every run: plans differ in
// nothing but what they say.
const entropySeed = 1

// logLines is how much of the operator's log is kept.
const logLines = 40

// engine implements driven.Engine for one run.
type engine struct {
	limits Limits
	plan   plan.Plan
	gate   *gate.Gate
	env    driven.Env
	began  time.Time

	shut     context.CancelFunc // of the gate
	turned   chan error
	restarts sync.WaitGroup

	mu     sync.Mutex
	namer  namer
	faults []fault
	starts map[int]*start
	now    int // the start that was made last
	writes []Write
	loop   loop
	lives  lives
	log    []string
	record Record
}

// fault of the plan, and whether it has happened.
type fault struct {
	plan.Fault
	met bool
}

// start is the operator from one start on.
type start struct {
	n     int
	state startState
	// effective and sent count its writes.
	effective, sent int
}

type startState uint8

const (
	// running: its requests are sent.
	running startState = iota
	// answering: it has crashed, but for the answer that it is given yet.
	answering
	// crashed: nothing that it sends is sent.
	crashed
)

func newEngine(p plan.Plan, limits Limits) *engine {
	e := &engine{plan: p, limits: limits.withDefaults(), starts: map[int]*start{}}
	e.loop.most = e.limits.SameWrite
	for _, f := range p.Faults {
		e.faults = append(e.faults, fault{Fault: f})
	}
	return e
}

// Seed implements driven.Engine.
func (e *engine) Seed() uint64 { return entropySeed }

// Attach implements driven.Engine.
func (e *engine) Attach(env driven.Env) error {
	if e.env != nil {
		return driven.ErrAgain
	}
	choose := gate.Chooser(gate.First)
	if e.plan.Seed != 0 {
		choose = gate.Seeded(e.plan.Seed)
	}
	var steppers []gate.Stepper
	for _, name := range env.Controllers() {
		steppers = append(steppers, gate.Stepper{Name: name, Step: func(ctx context.Context) (int, error) {
			n, err := env.StepController(ctx, name)
			if n > 0 {
				e.observe(ctx, name)
			}
			return n, err
		}})
	}
	e.env, e.began = env, time.Now()
	e.namer = namer{generated: map[string]int{}, kind: env.Kind}
	e.gate = gate.New(choose, steppers...)
	e.gate.Due(env.StepDue)
	if e.limits.Passed != nil {
		e.gate.Count(e.limits.Passed)
	}
	ctx, shut := context.WithCancel(context.Background())
	e.shut, e.turned = shut, make(chan error, 1)
	go func() { e.turned <- e.gate.Run(ctx) }()
	return nil
}

// User implements driven.Engine.
func (e *engine) User(name string, next http.RoundTripper) http.RoundTripper {
	w := &way{engine: e, actor: name, next: next}
	w.gated = e.gate.Transport(name, roundTrip(w.send))
	return w
}

// Operator implements driven.Engine.
func (e *engine) Operator(n int, next http.RoundTripper) http.RoundTripper {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &start{n: n}
	e.starts[n], e.now = s, n
	e.record.Starts = n
	name := plan.Operator
	if n > 1 {
		name = fmt.Sprint(plan.Operator, "#", n)
	}
	w := &way{engine: e, actor: plan.Operator, start: s, next: next}
	w.gated = e.gate.Transport(name, roundTrip(w.send))
	return w
}

// Ended implements driven.Engine.
func (e *engine) Ended(n int, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.starts[n].state != running && err != nil {
		e.logLocked(fmt.Sprintf("the operator ended after its crash: %v", err))
		return nil
	}
	return err
}

// Rest implements driven.Engine.
func (e *engine) Rest(ctx context.Context) (uint64, error) {
	if err := e.gate.Rest(ctx); err != nil {
		return 0, err
	}
	return e.env.Revision(), nil
}

// Log implements driven.Engine.
func (e *engine) Log(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logLocked(line)
}

func (e *engine) logLocked(line string) {
	if len(e.log) == logLines {
		e.log = slices.Delete(e.log, 0, 1)
	}
	e.log = append(e.log, line)
}

// restart ends a start that has crashed, and starts the operator anew.
func (e *engine) restart(n int) {
	release := e.gate.Hold()
	e.restarts.Go(func() {
		defer release()
		if err := e.env.Restart(n); err != nil {
			e.trouble(Broken, fmt.Sprintf("start the operator again after its crash: %v", err))
		}
	})
}

// trouble notes the first trouble of the run.
func (e *engine) trouble(of, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.troubleLocked(of, message)
}

func (e *engine) troubleLocked(of, message string) {
	if e.record.Trouble == nil {
		e.record.Trouble = &Trouble{of, message}
	}
}

// silence has nothing that the operator sends sent any more, for the rest of the run.
func (e *engine) silenceLocked() {
	for _, s := range e.starts {
		s.state = crashed
	}
}

// finish waits until nothing is left to do, and reads what is there. It is called when the
// test has returned, before its cleanups.
func (e *engine) finish(failed bool) {
	if e.env == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.limits.Settle)
	defer cancel()
	if !failed {
		err := e.env.Settled(ctx)
		if err == nil {
			time.Sleep(e.limits.Linger)
			err = e.env.Settled(ctx)
		}
		if err != nil {
			e.neverSettles(fmt.Sprintf("%s after the end of the test it still acts: %v", e.limits.Settle, err))
		}
	}
	e.observe(ctx, "")
	objects, err := e.env.Objects(context.WithoutCancel(ctx))
	if err != nil {
		e.trouble(Broken, fmt.Sprintf("read the end: %v", err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record.Lives = e.lives.all(objects)
	e.record.Writes = slices.Clone(e.writes)
}

// close ends the gate. It is called after the cleanups of the test.
func (e *engine) close(skipped, failed bool) {
	if e.env == nil {
		e.record.Skipped, e.record.Failed = skipped, failed
		return
	}
	e.restarts.Wait()
	e.shut()
	err := <-e.turned
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.troubleLocked(Broken, err.Error())
	}
	r := &e.record
	r.Env, r.Skipped, r.Failed = true, skipped, failed
	for _, f := range e.faults {
		if f.met {
			r.Met++
		}
	}
	log := e.gate.Log()
	h := fnv.New64a()
	for _, line := range log {
		_, _ = h.Write([]byte(line + "\n"))
	}
	r.Steps, r.Digest, r.OperatorLog = len(log), h.Sum64(), e.log
	if e.limits.Log {
		r.Log = log
	}
}
