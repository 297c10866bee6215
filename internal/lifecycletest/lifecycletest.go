// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycletest is the conformance suite of long-lived parts. A part is of one of
// three shapes, by the names of its methods:
//
//   - [Blocking]: Run(ctx) works until ctx ends (Start(ctx), where
//     controller-runtime's Runnable has that name);
//   - [Started]: Start returns once the part works, and Stop once it has ended;
//   - [Closed]: it works from its constructor on and has no goroutine but those of
//     the calls under way; Close ends it.
//
// Goroutines are counted by a profiler label that they inherit, so that tests that
// use the suite may be parallel.
package lifecycletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a call or a goroutine that has to end may take.
const patience = time.Minute

// Started is a part with Start and Stop.
type Started struct {
	// Start returns once the part works. Starting twice is no error.
	Start func(ctx context.Context) error
	// Stop returns once everything that Start began has ended. Stopping twice is no
	// error, and a part that was stopped stays stopped.
	Stop func() error
	// Use is a call that works while the part does; nil where there is none.
	Use func(ctx context.Context) error
	// ErrStopped is what Start and Use return after Stop.
	ErrStopped error
	// Once: the part is started once, and ErrStarted is the error of a second Start.
	Once       bool
	ErrStarted error
	// Outlives: the context of Start bounds the start alone, not the part.
	Outlives bool
}

func (p *Started) use(ctx context.Context, t *testing.T, what string, want error) {
	t.Helper()
	if p.Use != nil {
		check(t, what, p.Use(ctx), want)
	}
}

// RunStarted runs the suite of parts with Start and Stop. open makes a fresh part.
func RunStarted(t *testing.T, open func(t *testing.T) Started) {
	t.Helper()
	scenario(t, "StartedTwice", func(ctx context.Context, t *testing.T) {
		p := open(t)
		check(t, "Start", p.Start(ctx), nil)
		if p.Once {
			check(t, "the second Start", p.Start(ctx), p.ErrStarted)
		} else {
			check(t, "the second Start", p.Start(ctx), nil)
		}
		p.use(ctx, t, "Use", nil)
		check(t, "Stop", p.Stop(), nil)
	})
	scenario(t, "StoppedTwice", func(ctx context.Context, t *testing.T) {
		p := open(t)
		check(t, "Start", p.Start(ctx), nil)
		p.use(ctx, t, "Use", nil)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { check(t, "Stop", p.Stop(), nil) })
		}
		both.Wait()
		check(t, "the third Stop", p.Stop(), nil)
		p.use(ctx, t, "Use after Stop", p.ErrStopped)
		check(t, "Start after Stop", p.Start(ctx), p.ErrStopped)
	})
	scenario(t, "StoppedBeforeStart", func(ctx context.Context, t *testing.T) {
		p := open(t)
		check(t, "Stop", p.Stop(), nil)
		check(t, "Start after Stop", p.Start(ctx), p.ErrStopped)
		p.use(ctx, t, "Use after Stop", p.ErrStopped)
	})
	scenario(t, "StoppedWhileStarting", func(ctx context.Context, t *testing.T) {
		p := open(t)
		var both sync.WaitGroup
		both.Go(func() {
			if err := p.Start(ctx); err != nil && !errors.Is(err, p.ErrStopped) {
				t.Errorf("Start beside Stop: %v", err)
			}
		})
		both.Go(func() { check(t, "Stop beside Start", p.Stop(), nil) })
		both.Wait()
		p.use(ctx, t, "Use after Stop", p.ErrStopped)
	})
	scenario(t, "ContextEnded", func(ctx context.Context, t *testing.T) {
		p := open(t)
		starting, cancel := context.WithCancel(ctx)
		check(t, "Start", p.Start(starting), nil)
		cancel()
		if p.Outlives {
			p.use(ctx, t, "Use after the end of the context of Start", nil)
			check(t, "Stop", p.Stop(), nil)
		}
	})
	scenario(t, "StartedWithAnEndedContext", func(ctx context.Context, t *testing.T) {
		p := open(t)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = p.Start(ended) // it may fail or end by itself
		check(t, "Stop", p.Stop(), nil)
	})
}

// Blocking is a part with Run.
type Blocking struct {
	// Run works until ctx ends, and returns nil then, once everything that it began
	// has ended. A part runs once: a second Run is the error ErrStarted.
	Run func(ctx context.Context) error
	// Running waits until the part works; nil where Run does at once.
	Running func(ctx context.Context) error
	// ErrStarted is the error of a second Run; nil for a part that may run again.
	ErrStarted error
	// Use is a call that must fail with ErrStopped once Run has returned; nil where
	// there is none.
	Use        func(ctx context.Context) error
	ErrStopped error
}

// RunBlocking runs the suite of parts with Run. open makes a fresh part.
func RunBlocking(t *testing.T, open func(t *testing.T) Blocking) {
	t.Helper()
	run := func(ctx context.Context, p Blocking) (end func() error) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		if p.Running != nil {
			if err := p.Running(ctx); err != nil {
				cancel()
				return func() error { return errors.Join(<-ended, err) }
			}
		}
		return func() error {
			cancel()
			return <-ended
		}
	}
	again := func(ctx context.Context, t *testing.T, what string, p Blocking) {
		t.Helper()
		if p.ErrStarted != nil {
			check(t, what, p.Run(ctx), p.ErrStarted)
		}
	}
	scenario(t, "ContextEnded", func(ctx context.Context, t *testing.T) {
		p := open(t)
		check(t, "Run", run(ctx, p)(), nil)
		if p.Use != nil {
			check(t, "Use after the end", p.Use(ctx), p.ErrStopped)
		}
	})
	scenario(t, "ContextEndedBefore", func(ctx context.Context, t *testing.T) {
		p := open(t)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		check(t, "Run", p.Run(ended), nil)
		if p.Use != nil {
			check(t, "Use after the end", p.Use(ctx), p.ErrStopped)
		}
		again(ctx, t, "the second Run", p)
	})
	scenario(t, "ContextEndedWhileStarting", func(ctx context.Context, t *testing.T) {
		p := open(t)
		p.Running = nil
		check(t, "Run", run(ctx, p)(), nil)
	})
	scenario(t, "RunTwice", func(ctx context.Context, t *testing.T) {
		p := open(t)
		if p.ErrStarted == nil {
			return
		}
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 2)
		go func() { ended <- p.Run(running) }()
		if p.Running != nil {
			check(t, "Running", p.Running(ctx), nil)
		}
		// Without Running either of the two may be the second.
		go func() { ended <- p.Run(running) }()
		check(t, "Run beside Run", <-ended, p.ErrStarted)
		cancel()
		check(t, "Run", <-ended, nil)
		again(ctx, t, "Run after the end", p)
	})
}

// Closed is a part that works from its constructor on.
type Closed struct {
	// Close ends the part. Closing twice is no error.
	Close func() error
	// Use is a call that works while the part does, and must fail with ErrClosed then.
	Use       func(ctx context.Context) error
	ErrClosed error
}

// RunClosed runs the suite of parts with Close. open makes a fresh part.
func RunClosed(t *testing.T, open func(t *testing.T) Closed) {
	t.Helper()
	scenario(t, "ClosedTwice", func(ctx context.Context, t *testing.T) {
		p := open(t)
		check(t, "Use", p.Use(ctx), nil)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { check(t, "Close", p.Close(), nil) })
		}
		both.Wait()
		check(t, "the third Close", p.Close(), nil)
		check(t, "Use after Close", p.Use(ctx), p.ErrClosed)
	})
	scenario(t, "ClosedWhileUsed", func(ctx context.Context, t *testing.T) {
		p := open(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := p.Use(ctx); err != nil && !errors.Is(err, p.ErrClosed) {
					t.Errorf("Use beside Close: %v", err)
				}
			})
		}
		all.Go(func() { check(t, "Close", p.Close(), nil) })
		all.Wait()
	})
}

// check reports an err that is not want.
func check(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got the error %v, want %v", what, err, want)
	}
}

// label is the key of the profiler label that the goroutines of a scenario inherit.
const label = "lifecycletest"

// scenario runs f as a parallel subtest on a goroutine of its own, and fails when f
// does not return in time or a goroutine that it began is left.
func scenario(t *testing.T, name string, f func(ctx context.Context, t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		id := fmt.Sprintf("%s/%p", t.Name(), t)
		returned := make(chan struct{})
		go pprof.Do(ctx, pprof.Labels(label, id), func(ctx context.Context) {
			defer close(returned)
			f(ctx, t)
		})
		select {
		case <-returned:
		case <-time.After(2 * patience):
			t.Fatalf("it does not return:\n%s", goroutines(id))
		}
		// What ends with a context does so soon, but not at once.
		for deadline := time.Now().Add(patience); ; {
			left := goroutines(id)
			if left == "" {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("goroutines are left:\n%s", left)
			}
			<-time.After(time.Millisecond)
		}
	})
}

// goroutines returns the stacks of the goroutines of a scenario.
func goroutines(id string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var out strings.Builder
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q}", label, id)) {
			out.WriteString(stack + "\n\n")
		}
	}
	return out.String()
}
