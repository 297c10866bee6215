// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
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
	if e.options.Operator.Setup == nil {
		e.Fatalf("steertest: start the operator: Options.Operator and Options.Setup are missing")
	}
	o, err := e.managerOptions()
	if err != nil {
		e.Fatalf("steertest: the options of the operator: %v", err)
	}
	m, err := manager.New(e.operator, o)
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	if err := e.options.Operator.Setup(e.ctx, m); err != nil {
		e.Fatalf("steertest: set up the operator: %v", err)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Start(ctx); err != nil {
			e.fail(fmt.Errorf("the operator ended: %w", err), "")
		}
	}()
	e.Manager, e.last = m, m
	e.stop = func() {
		e.webhooks.running.Store(nil)
		cancel()
		<-ended
	}
	e.serveWebhooks(m)
}

// managerOptions are those of the operator's main, with what is different under
// test: no server listens unless the test asks for it, reads of kinds without an
// informer are errors, and the log is the test's.
func (e *Env) managerOptions() (manager.Options, error) {
	args := append([]string{"--health-probe-bind-address=0", "--webhook-port=0", "--leader-election-namespace=" + e.Namespace}, e.options.Args...)
	o, err := e.options.Operator.Options(args, func(o *manager.Options) {
		if e.Plane == nil {
			o.Cache.Namespaces = []string{e.Namespace}
		}
		e.webhooks.configure(e, o)
		o.Cache.Undeclared, o.Cache.DetectMutation = cache.UndeclaredError, true
		o.Log = slog.New(slog.NewTextHandler(testWriter{e.TB}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	if err != nil {
		return o, err
	}
	o.Scheme = e.options.Scheme
	wrap, onError := o.WrapClient, o.OnError
	o.WrapClient = func(c client.Client) client.Client {
		c = e.interceptors(c)
		if wrap != nil {
			c = wrap(c)
		}
		if e.options.Mistakes {
			return c
		}
		return interceptor.New(c, interceptor.Each(e.mistakes.intercept))
	}
	o.OnError = func(err error) {
		if onError != nil {
			onError(err)
		}
		if !e.options.Mistakes {
			e.mistakes.look(err)
		}
	}
	return o, nil
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

// fail fails the test from any goroutine, with advice below the error, and ends
// what waits.
func (e *Env) fail(err error, advice string) {
	e.Errorf("steertest: %s", strings.TrimSpace(fmt.Sprint(err, "\n", advice)))
	e.broken(err)
}

// reconciles logs what the operator did, since it was started last, for a test
// that failed.
func (e *Env) reconciles() {
	const most = 20
	var last []string
	for r := range e.last.Recorder().Records() {
		last = append(last, r.String())
	}
	switch {
	case len(last) == 0:
		e.Log("the operator has reconciled nothing since its start")
	case len(last) > most:
		e.Logf("the last %d of %d reconciles:", most, len(last))
		last = last[len(last)-most:]
	default:
		e.Logf("all reconciles: %d", len(last))
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
