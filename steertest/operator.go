// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
)

// StartOperator starts the operator under test with a new manager, as after a
// restart of its process: nothing is remembered but what the control plane has.
// [New] does it first. It does nothing while the operator runs.
func (e *Env) StartOperator() {
	e.Helper()
	if e.stop != nil {
		return
	}
	if e.options.Setup == nil {
		e.Fatalf("steertest: start the operator: Options.Setup is missing")
	}
	m, err := manager.New(e.operator, manager.Options{
		Name:       "steertest",
		Scheme:     e.options.Scheme,
		Cache:      cache.Options{Undeclared: cache.UndeclaredError, DetectMutation: true},
		WrapClient: func(c client.Client) client.Client { return interceptor.New(c, e.options.Intercept) },
		OnPanic:    e.panicked,
		Log:        slog.New(slog.NewTextHandler(testWriter{e.TB}, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	if err := e.options.Setup(e.ctx, m); err != nil {
		e.Fatalf("steertest: set up the operator: %v", err)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Start(ctx); err != nil {
			e.fail(fmt.Errorf("the operator ended: %w", err))
		}
	}()
	e.Manager, e.last = m, m
	e.stop = func() {
		cancel()
		<-ended
	}
}

// StopOperator tells the operator to end and waits until it has. It does nothing
// when none runs.
func (e *Env) StopOperator() {
	if e.stop == nil {
		return
	}
	e.stop()
	e.stop, e.Manager = nil, nil
}

// fail fails the test from any goroutine, and ends what waits.
func (e *Env) fail(err error) {
	e.Errorf("steertest: %v", err)
	e.broken(err)
}

// panicked fails the test, unless it expects panics.
func (e *Env) panicked(err error) {
	var p *controller.PanicError
	if e.options.Panics || !errors.As(err, &p) {
		return
	}
	e.fail(fmt.Errorf("a reconcile panicked (Options.Panics lets it): %w\n%s", err, p.Stack))
}

// reconciles logs what the operator did, since it was started last, for a test
// that failed.
func (e *Env) reconciles() {
	const most = 20
	var last []string
	for r := range e.last.Recorder().Records() {
		last = append(last, r.String())
	}
	if len(last) > most {
		e.Logf("the last %d of %d reconciles:", most, len(last))
		last = last[len(last)-most:]
	} else {
		e.Logf("all %d reconciles:", len(last))
	}
	for _, line := range last {
		e.Log(line)
	}
}

// testWriter logs lines to a test, and drops what comes after its end.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(line []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(string(line[:max(len(line)-1, 0)]))
	}
	return len(line), nil
}
