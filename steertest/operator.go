// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/manager"
)

// keptRecorders is of how many starts of the operator records are kept.
const keptRecorders = 8

// incarnation is the operator from one start to its end.
type incarnation struct {
	n       int  // of the start, from 1
	elects  bool // its controllers wait for the leader lease
	manager *manager.Manager
	ctx     context.Context // ends with it
	cancel  context.CancelFunc
	ended   chan struct{}
}

// Manager runs the operator under test; nil while none runs. Each start makes another one.
func (e *Env) Manager() *manager.Manager {
	if now := e.running.Load(); now != nil {
		return now.manager
	}
	return nil
}

// StartOperator starts the operator under test with a new manager, as after a
// restart of its process: nothing is remembered but what the control plane has.
// [New] does it first. It does nothing while the operator runs.
func (e *Env) StartOperator() {
	e.Helper()
	defer e.hold()()
	if e.running.Load() != nil {
		return
	}
	if e.options.Operator.Setup == nil {
		e.Fatalf("steertest: start the operator: Options.Operator and Options.Setup are missing")
	}
	if err := e.start(); err != nil {
		e.Fatalf("steertest: %v", err)
	}
}

// hold waits until the operator is neither started nor stopped, and keeps others from it
// until the returned function is called.
func (e *Env) hold() (release func()) {
	e.life <- struct{}{}
	return func() { <-e.life }
}

// start starts the operator, which does not run; life is held.
func (e *Env) start() error {
	now, err := e.launch(func(cfg *rest.Config) *rest.Config { return cfg }, func(err error) error { return err })
	if err != nil {
		return err
	}
	e.running.Store(now)
	e.last.Store(now)
	return e.serveWebhooks(now.manager)
}

// launch starts a process of the operator; life is held. Its connections are those that
// connect makes of the operator's, and ended may say that its end is not a failure.
func (e *Env) launch(connect func(*rest.Config) *rest.Config, ended func(error) error) (*incarnation, error) {
	n := e.starts + 1
	o, err := e.managerOptions(n)
	if err != nil {
		return nil, fmt.Errorf("the options of the operator: %w", err)
	}
	m, err := manager.New(connect(e.drivenOperator(n)), o)
	if err != nil {
		return nil, err
	}
	if err := e.options.Operator.Setup(e.ctx, m); err != nil {
		return nil, fmt.Errorf("set up the operator: %w", err)
	}
	now := &incarnation{n: n, elects: o.Election.Enabled, manager: m, ended: make(chan struct{})}
	now.ctx, now.cancel = context.WithCancel(e.ctx)
	go func() {
		defer close(now.ended)
		err := ended(m.Start(now.ctx))
		if e.engine != nil {
			err = e.engine.Ended(n, err)
		}
		if err != nil {
			e.fail(fmt.Errorf("the operator ended: %w", err), "")
		}
	}()
	e.starts = n
	e.recorders = append(e.recorders, m.Recorder())
	e.recorders = e.recorders[max(len(e.recorders)-keptRecorders, 0):]
	return now, nil
}

// managerOptions are those of the operator's main, with what is different under
// test: no server listens unless the test asks for it, reads of kinds without an
// informer are errors, and the log is the test's.
func (e *Env) managerOptions(n int) (manager.Options, error) {
	args := append([]string{"--health-probe-bind-address=0", "--webhook-port=0", "--leader-election-namespace=" + e.Namespace}, e.options.Args...)
	o, err := e.options.Operator.Options(args, func(o *manager.Options) {
		if e.Plane == nil {
			o.Cache.Namespaces = []string{e.Namespace}
		}
		e.configureWebhooks(o)
		o.Cache.Undeclared, o.Cache.DetectMutation = cache.UndeclaredError, true
		o.Log = slog.New(slog.NewTextHandler(e.output.Writer(e.TB, e.engine), &slog.HandlerOptions{Level: slog.LevelInfo}))
		if e.engine != nil {
			// Each start is another process: what it draws is its own.
			o.Seed, o.Instance = e.engine.Seed()+uint64(n), fmt.Sprint(o.Name, "-", n) // from 1
		}
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
		return interceptor.New(c, interceptor.Each(e.mistakes.Intercept))
	}
	o.OnError = func(err error) {
		if onError != nil {
			onError(err)
		}
		if !e.options.Mistakes {
			e.mistakes.Look(err)
			if e.engine == nil && len(e.options.Faults) == 0 { // these pass
				e.hopeless.Look(err)
			}
		}
	}
	if !e.options.Mistakes {
		o.Webhooks.OnMistake = e.mistakes.Look
	}
	return o, nil
}

// StopOperator tells the operator to end and waits until it has. It does nothing
// when none runs.
func (e *Env) StopOperator() {
	defer e.hold()()
	e.stop()
}

// stop is StopOperator while life is held.
func (e *Env) stop() {
	now := e.running.Load()
	if now == nil {
		return
	}
	e.webhooks.Remove(now.manager.Webhooks())
	now.cancel()
	<-now.ended
	e.running.Store(nil)
}

// fail fails the test from any goroutine, with advice below the error, and ends
// what waits.
func (e *Env) fail(err error, advice string) {
	e.Errorf("steertest: %s", strings.TrimSpace(fmt.Sprint(err, "\n", advice)))
	e.broken(err)
}
