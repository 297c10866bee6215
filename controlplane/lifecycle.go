// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubernetesservice"
	"github.com/steer-dev/steer/storage"
)

// Start listens, if asked to, and runs the built-in controllers. It returns when
// the plane is ready; ctx bounds only that. Starting twice is no error. A Stop meanwhile
// ends it with [ErrStopped].
func (p *Plane) Start(ctx context.Context) error {
	select {
	case p.changing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("controlplane: another Start has not ended: %w", ctx.Err())
	}
	defer func() { <-p.changing }()
	switch now, _ := p.life(); now {
	case started:
		return nil
	case stopped:
		return ErrStopped
	}
	if p.options.Listen != "" {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ends, cancel)()
		if err := p.listen(ctx); p.ends.Err() != nil {
			return ErrStopped // what listens is closed by the Stop, or was by listen
		} else if err != nil {
			return err
		}
	}
	p.run()
	if p.several == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ends, cancel)()
	err := p.several.AwaitPrepared(ctx)
	p.several.Ask(ctx)
	if p.ends.Err() != nil {
		return ErrStopped
	}
	return err
}

// run notes that the plane is started, and runs the controllers unless the caller steps
// them: now, or whenever it leads.
func (p *Plane) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = started
	run := func(ctx context.Context) {
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { p.upkeep.Run(ctx) })
		if p.registered != nil {
			running.Go(func() { p.registered.Run(ctx) })
		}
		p.control(ctx)
	}
	if p.several != nil {
		run = p.compete
	} else if p.options.ManualControllers {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	loop := make(chan struct{})
	p.cancel, p.loop = cancel, loop
	go func() {
		defer close(loop)
		run(ctx)
	}()
}

// control runs the controllers until ctx ends, unless the caller steps them.
func (p *Plane) control(ctx context.Context) {
	if p.options.ManualControllers {
		return
	}
	p.stepping.Lock()
	defer p.stepping.Unlock()
	if err := p.runner.Run(ctx); err != nil && ctx.Err() == nil {
		p.stages.Failure.Store(&err)
		p.options.Log.Error("the built-in controllers have stopped", "err", err)
	}
}

// life returns where the plane is in its life, and whether its controllers act by
// themselves.
func (p *Plane) life() (now state, running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.loop != nil
}

func (p *Plane) listen(ctx context.Context) (err error) {
	if err := p.mayListen(ctx, p.options.Listen); err != nil {
		return err
	}
	keys, err := p.keys()
	if err != nil {
		return err
	}
	server := p.server.HTTPServer()
	var other func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	if p.several != nil {
		server.Handler, other = p.several.Handler(server.Handler), p.several.GetCertificate
	}
	hosts := slices.Clone(p.options.Hosts)
	if p.options.Endpoint != "" {
		host, _, err := net.SplitHostPort(p.options.Endpoint)
		if err != nil {
			return fmt.Errorf("controlplane: Options.Endpoint: %w", err)
		}
		hosts = append(hosts, host)
	}
	if p.options.Advertise.IsValid() {
		hosts = append(hosts, p.options.Advertise.Addr().String())
	}
	l, err := listen(ctx, p.options.Listen, hosts, keys, server, p.server.Bound, other, p.options.Log)
	if err != nil {
		return err
	}
	url := l.url()
	p.listener = l
	p.address.Store(&url)
	defer func() {
		if err != nil { // the address is free for another Start
			p.listener = nil
			p.address.Store(nil)
			err = errors.Join(err, l.close(ctx))
		}
	}()
	p.register(p.advertised())
	if p.several != nil { // the one that leads announces
		return nil
	}
	if err := p.announce(ctx); err != nil {
		return err
	}
	p.upkeep.Try(ctx, redirecting, p.self.Redirect)
	p.stages.Announced.Store(true)
	return ctx.Err()
}

// advertised is where the listener is for others; see [Options.Advertise].
func (p *Plane) advertised() *net.TCPAddr {
	return kubernetesservice.Advertised(p.listener.address(), p.options.Advertise)
}

// Stop ends watches, waits for the requests in flight until ctx ends, joins
// everything that runs and closes the store. Stopping twice returns the same.
func (p *Plane) Stop(ctx context.Context) error {
	p.end()
	p.changing <- struct{}{} // a Start ends now, another Stop when its context says so
	defer func() { <-p.changing }()
	p.mu.Lock()
	already, loop := p.state == stopped, p.loop
	p.state = stopped
	p.mu.Unlock()
	if already {
		return p.stopped
	}
	p.server.Leave()
	if p.registered != nil && loop != nil {
		p.registered.Leave(ctx)
	}
	p.delay(ctx)
	closed := p.closeListener(ctx)
	if loop != nil {
		p.cancel()
		<-loop
	}
	p.list.Close()
	p.stepping.Lock()
	p.runner.Close()
	p.stepping.Unlock()
	p.server.EndWatches()
	errs := []error{closed(), p.server.Stop(ctx)}
	p.webhooks.Close() // the requests that call them have ended
	if p.several != nil {
		p.several.Close()
	}
	p.stopped = errors.Join(append(errs, p.closeStore())...)
	return p.stopped
}

// delay waits for [Options.ShutdownDelay], or until ctx ends.
func (p *Plane) delay(ctx context.Context) {
	if p.options.ShutdownDelay <= 0 || p.listener == nil {
		return
	}
	timer := time.NewTimer(p.options.ShutdownDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// closeListener returns a function that waits until the listener is closed, and with it every
// request that it has accepted. Where there are other servers it closes at once for new
// connections and requests, so that clients choose another while those under way end;
// otherwise when it is waited for.
func (p *Plane) closeListener(ctx context.Context) (wait func() error) {
	if p.listener == nil {
		return func() error { return nil }
	}
	if p.several == nil {
		return func() error { return p.listener.close(ctx) }
	}
	closed := make(chan error, 1)
	go func() { closed <- p.listener.close(ctx) }()
	return func() error { return <-closed }
}

func (p *Plane) closeStore() error {
	if !p.owned {
		return nil
	}
	return p.store.Close()
}

// Step lets every built-in controller act once on what it sees, and returns how
// many requests that took: 0 when all is settled. It fails with
// [ErrControllersRun] while they act by themselves.
func (p *Plane) Step(ctx context.Context) (int, error) { return p.stepped(ctx, p.runner.Advance) }

// Controllers returns the names of the built-in controllers that this plane has, in the
// order in which Step asks them.
func (p *Plane) Controllers() []string { return p.runner.Names() }

// StepController lets one of them act once, under the same condition as Step.
func (p *Plane) StepController(ctx context.Context, name string) (int, error) {
	return p.stepped(ctx, func(ctx context.Context) (int, error) { return p.runner.AdvanceOne(ctx, name) })
}

// StepDue returns how long until a built-in controller has something to do although nothing
// is written, such as to delete what has expired; false for never, and where they act by
// themselves.
func (p *Plane) StepDue() (time.Duration, bool) {
	if now, running := p.life(); now == stopped || running {
		return 0, false
	}
	p.stepping.Lock()
	defer p.stepping.Unlock()
	return p.runner.Due()
}

// Settle steps until nothing is left to do, under the same condition.
func (p *Plane) Settle(ctx context.Context) (int, error) { return p.stepped(ctx, p.runner.Settle) }

func (p *Plane) stepped(ctx context.Context, step func(context.Context) (int, error)) (int, error) {
	switch now, running := p.life(); {
	case now == stopped:
		return 0, ErrStopped
	case running:
		return 0, ErrControllersRun
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ends, cancel)()
	p.stepping.Lock()
	defer p.stepping.Unlock()
	p.upkeep.Repeat(ctx)
	requests, err := step(ctx)
	if p.ends.Err() != nil {
		err = ErrStopped
	}
	return requests, err
}

// Idle waits until the built-in controllers that [Plane.Start] runs have nothing
// left to do, and returns the revision up to which that is so. Where they act on
// demand only, it returns the newest revision at once; where another server leads, those
// count that this one runs. What they will do when
// time has passed does not count.
func (p *Plane) Idle(ctx context.Context) (storage.Revision, error) {
	view := p.store.Latest()
	now, running := p.life()
	if now == stopped {
		return 0, ErrStopped
	}
	var acting []*step.Runner
	if running && (p.several == nil || p.several.Leads()) {
		acting = append(acting, p.runner)
	}
	if running && p.several != nil {
		acting = append(acting, p.local)
	}
	for _, r := range acting {
		if err := r.Idle(ctx, view.Revision()); err != nil {
			return 0, fmt.Errorf("controlplane: the built-in controllers do not come to rest: %w", err)
		}
	}
	return view.Revision(), nil
}
