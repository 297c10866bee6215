// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate lets through one at a time what the actors of a simulation send and
// receive, in an order that a seed decides.
//
// Every request, every answer and every part of a watch waits at the [Gate]. When
// nothing else in the bubble of synctest can go on, the gate puts those that wait into an
// order that depends on nothing but what they are, and releases one: the one that its
// [Chooser] names. The same choices of the same program therefore make the same run, and
// other choices another one that is as legal: what is released late was slow.
//
// Built-in controllers of a control plane send their requests past the network. They are
// stepped, one at a time: a [Stepper] is one more thing that can go on.
package gate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"
)

// Chooser names the one of n, from 0, that is released next.
type Chooser func(n int) int

// First always chooses the first in order.
func First(int) int { return 0 }

// Seeded chooses at random.
func Seeded(seed uint64) Chooser {
	rnd := rand.New(rand.NewPCG(seed, 0))
	return rnd.IntN
}

// Stepper is an actor that goes on only when it is stepped.
type Stepper struct {
	Name string
	// Step acts once, and returns how many requests that took; after 0 it is asked again
	// only once something was written.
	Step func(ctx context.Context) (int, error)
}

// Gate is for one bubble. Its zero value does not work: use [New].
type Gate struct {
	began    time.Time
	choose   Chooser
	steppers []*stepper
	due      func() (time.Duration, bool)

	stepping sync.WaitGroup
	passed   *atomic.Int64

	mu      sync.Mutex
	waiting []*ticket
	resting []chan struct{} // of those who wait until nothing is under way
	held    int
	came    chan struct{}
	log     []string
	choices []int
	err     error // of a stepper
}

type stepper struct {
	Stepper
	// idle says that it had nothing to do, and that nothing was written since; running
	// that a step is under way.
	idle, running bool
}

// ticket is one that waits.
type ticket struct {
	key    string
	passed chan struct{}
}

// New returns a gate that is closed until [Gate.Run]; call it within the bubble.
func New(choose Chooser, steppers ...Stepper) *Gate {
	g := &Gate{began: time.Now(), choose: choose, came: make(chan struct{}, 1), passed: &atomic.Int64{}}
	for _, s := range steppers {
		g.steppers = append(g.steppers, &stepper{Stepper: s})
	}
	return g
}

// Due sets the function that returns how long until a stepper has something to do although
// nothing is written; false for never. Call it before Run.
func (g *Gate) Due(due func() (time.Duration, bool)) { g.due = due }

// Count sets the counter of all that pass, which may be read from outside the bubble: while
// it grows, the run goes on. Call it before Run.
func (g *Gate) Count(passed *atomic.Int64) { g.passed = passed }

// Hold keeps [Gate.Rest] waiting until the returned function is called: for what is under
// way although nothing waits at the gate, such as an operator that ends.
func (g *Gate) Hold() (release func()) {
	g.mu.Lock()
	g.held++
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		g.held--
		g.mu.Unlock()
		g.wake()
	}
}

// Rest waits until nothing is under way and no stepper has something to do. What a timer
// starts later does not count.
func (g *Gate) Rest(ctx context.Context) error {
	rests := make(chan struct{})
	g.mu.Lock()
	g.resting = append(g.resting, rests)
	g.mu.Unlock()
	g.wake()
	select {
	case <-rests:
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		g.resting = slices.DeleteFunc(g.resting, func(o chan struct{}) bool { return o == rests })
		return context.Cause(ctx)
	}
}

// Transport is the way of an actor to the server through the gate. Its name is part of
// the order, and of the log.
func (g *Gate) Transport(actor string, next http.RoundTripper) http.RoundTripper {
	return &transport{gate: g, actor: actor, next: next}
}

// Log is what has passed so far, in order: when, by whom, what, with a digest of its
// bytes.
func (g *Gate) Log() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.log)
}

// Choices are those that were made so far, of more than one: [Replay] makes them again.
func (g *Gate) Choices() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.choices)
}

// Replay makes choices again, and behind their end chooses the first. One that cannot be
// made, because fewer wait than did, is the last that can.
func Replay(choices []int) Chooser {
	return func(n int) int {
		if len(choices) == 0 {
			return 0
		}
		next := choices[0]
		choices = choices[1:]
		return min(next, n-1)
	}
}

// Run releases until ctx ends; what waits then gets the end of its own context. It must
// be the only one in the bubble that calls synctest.Wait. The error is that of a stepper.
func (g *Gate) Run(ctx context.Context) error {
	defer g.stepping.Wait()
	for {
		alarm := g.alarm()
		select {
		case <-g.came:
		case <-alarm:
			g.mu.Lock()
			g.writtenLocked()
			g.mu.Unlock()
		case <-ctx.Done():
			return nil
		}
		for ctx.Err() == nil && g.release(ctx) {
		}
		g.mu.Lock()
		err := g.err
		g.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// alarm is when a stepper has something to do although nothing is written; nil for never.
func (g *Gate) alarm() <-chan time.Time {
	if g.due == nil || g.busy() {
		return nil
	}
	if left, ok := g.due(); ok {
		return time.After(max(left, time.Millisecond)) // what was due has been asked
	}
	return nil
}

// busy reports whether a step is under way: whose plane has it to itself.
func (g *Gate) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.steppers, func(s *stepper) bool { return s.running })
}

// release lets one go on when no other goroutine can, and reports false when none
// waits.
func (g *Gate) release(ctx context.Context) bool {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortStableFunc(g.waiting, func(a, b *ticket) int { return cmp.Compare(a.key, b.key) })
	ready := g.readyLocked()
	n, chosen := len(g.waiting)+len(ready), 0
	switch {
	case g.err != nil:
		return false
	case n == 0:
		return g.restLocked()
	case n > 1:
		chosen = g.choose(n)
		g.choices = append(g.choices, chosen)
	}
	if chosen >= len(g.waiting) {
		s := ready[chosen-len(g.waiting)]
		s.running = true
		// What it calls, such as a webhook, may have to pass the gate.
		g.stepping.Go(func() { g.step(ctx, s) })
		return true
	}
	t := g.waiting[chosen]
	g.waiting = slices.Delete(g.waiting, chosen, chosen+1)
	g.noteLocked(t.key)
	close(t.passed)
	return true
}

// readyLocked returns the steppers that may have something to do: none while one acts.
func (g *Gate) readyLocked() []*stepper {
	var ready []*stepper
	for _, s := range g.steppers {
		switch {
		case s.running:
			return nil
		case !s.idle:
			ready = append(ready, s)
		}
	}
	return ready
}

// restLocked lets one go on that waits until nothing is under way, and reports false when
// something is or none waits.
func (g *Gate) restLocked() bool {
	running := slices.ContainsFunc(g.steppers, func(s *stepper) bool { return s.running })
	if running || g.held > 0 || len(g.resting) == 0 {
		return false
	}
	close(g.resting[0])
	g.resting = g.resting[1:]
	return true
}

// step has a stepper act once.
func (g *Gate) step(ctx context.Context, s *stepper) {
	requests, err := s.Step(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	s.running = false
	switch {
	case err != nil && ctx.Err() == nil:
		g.err = fmt.Errorf("step %s: %w", s.Name, err)
	case requests == 0:
		s.idle = true
	default:
		g.noteLocked(fmt.Sprintf("%s: %d requests", s.Name, requests))
		g.writtenLocked()
	}
	g.wake()
}

// writtenLocked has every stepper look again.
func (g *Gate) writtenLocked() {
	for _, s := range g.steppers {
		s.idle = false
	}
}

func (g *Gate) noteLocked(what string) {
	g.passed.Add(1)
	g.log = append(g.log, fmt.Sprintf("%v %s", time.Since(g.began), what))
}

// pass waits for its turn.
func (g *Gate) pass(ctx context.Context, key string) error {
	t := &ticket{key: key, passed: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, t)
	g.mu.Unlock()
	g.wake()
	select {
	case <-t.passed:
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waiting = slices.DeleteFunc(g.waiting, func(o *ticket) bool { return o == t })
		return context.Cause(ctx)
	}
}

func (g *Gate) wake() {
	select {
	case g.came <- struct{}{}:
	default: // it is awake
	}
}

// transport is the way of one actor.
type transport struct {
	gate  *Gate
	actor string
	next  http.RoundTripper
}

// BodyOf reads the body of a request whole, and returns it with a request that has it.
func BodyOf(r *http.Request) ([]byte, *http.Request, error) {
	if r.Body == nil {
		return nil, r, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, r, err
	}
	_ = r.Body.Close()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, r, nil
}

// AnswerOf reads the body of an answer whole, and puts it back.
func AnswerOf(resp *http.Response) ([]byte, error) {
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return answer, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, r, err := BodyOf(r)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s: %s %s", t.actor, r.Method, r.URL.RequestURI())
	if err := t.gate.pass(r.Context(), what+digest(body)); err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		t.gate.mu.Lock()
		t.gate.writtenLocked()
		t.gate.mu.Unlock()
		t.gate.wake()
	}
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Has("watch") && resp.StatusCode == http.StatusOK {
		resp.Body = &stream{ReadCloser: resp.Body, ctx: r.Context(), gate: t.gate, what: what}
		return resp, nil
	}
	answer, err := AnswerOf(resp)
	if err != nil {
		return nil, err
	}
	if err := t.gate.pass(r.Context(), fmt.Sprintf("%s -> %d%s", what, resp.StatusCode, digest(answer))); err != nil {
		return nil, err
	}
	return resp, nil
}

// stream is the body of a watch: what has arrived waits before it is read.
type stream struct {
	io.ReadCloser
	ctx  context.Context
	gate *Gate
	what string
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n == 0 {
		return n, err
	}
	if err := s.gate.pass(s.ctx, s.what+" ->"+digest(p[:n])); err != nil {
		return 0, err
	}
	return n, err
}

// digest tells bytes apart in a log.
func digest(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return fmt.Sprintf(" %x", h.Sum64())
}
