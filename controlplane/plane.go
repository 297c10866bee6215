// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/core/flow"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubernetesservice"
	"github.com/steer-dev/steer/controlplane/part"
	"github.com/steer-dev/steer/controlplane/rbac"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// Plane is a control plane. Its methods are safe for concurrent use.
type Plane struct {
	options Options
	store   storage.Store
	owned   bool // whether Stop closes the store
	server  *apiserver.Server
	// authorizer is that of the options, or the plane's own.
	authorizer auth.Authorizer
	runner     *step.Runner
	self       *kubernetesservice.Server
	webhooks   *webhookclient.Client
	keys       func() (*Keys, error)
	list       part.List

	progress progress

	// address is the URL of the listener, for requests: they must not wait for mu.
	address atomic.Pointer[string]

	// stepping is held while the runner is used, by the loop for all its life.
	stepping sync.Mutex

	mu       sync.Mutex
	state    state
	listener *listener
	cancel   context.CancelFunc // ends the loop of the controllers
	loop     chan struct{}      // closed when it has ended
	stopped  error
}

// state of a plane's life.
type state int

const (
	serving state = iota // in process only
	started
	stopped
)

// sharedSchemas lets the planes of a process compile a schema once.
var sharedSchemas = sync.OnceValue(crd.NewSchemas)

// New opens the store and returns a plane that serves in process. It has no
// goroutine of its own until it is started.
func New(o Options) (*Plane, error) {
	return build(&Plane{options: o.withDefaults(), store: o.Store})
}

// build completes a plane that has its options, and its store and keys if those
// are not its own.
func build(p *Plane) (*Plane, error) {
	o := &p.options
	if p.store == nil {
		store, err := openStore(o.DataDir, o.Log)
		if err != nil {
			return nil, err
		}
		p.store, p.owned = store, true
	}
	if err := p.assemble(); err != nil {
		return nil, errors.Join(err, p.closeStore())
	}
	return p, nil
}

// openKeys returns what finds the plane's keys, once they are needed.
func (o *Options) openKeys() func() (*Keys, error) {
	given, dir := o.Authentication.Keys, o.DataDir
	return sync.OnceValues(func() (*Keys, error) {
		switch {
		case given != nil:
			return given.withAccounts()
		case dir != "":
			return OpenKeys(filepath.Join(dir, "pki"))
		}
		return NewKeys()
	})
}

// authority returns what signs the certificates of users.
func (p *Plane) authority() (*certificates.Authority, error) {
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	return &certificates.Authority{Certificate: keys.CA, Signer: keys.Signer}, nil
}

// assemble puts the parts of the plane together over its store.
func (p *Plane) assemble() error {
	o := &p.options
	all, authentication, err := p.declare()
	if err != nil {
		return err
	}
	if p.list, err = all.Without(o.Disable...); err != nil {
		return fmt.Errorf("controlplane: Options.Disable: %w", err)
	}
	p.server.Bind(apiserver.Bindings{Authenticator: authentication, Admission: p.list.Admission(), Checks: p.list.Health()})
	if err := p.list.Install(p.server); err != nil {
		return fmt.Errorf("controlplane: serve the built-in kinds: %w", err)
	}
	ctx := context.Background()
	if err := p.boot(ctx); err != nil {
		return err
	}
	if err := p.list.Load(ctx); err != nil {
		return err
	}
	p.runner = step.NewRunner(p.store, p.send, o.Log, p.list.Controllers()...)
	p.progress.announced.Store(o.Listen == "")
	p.progress.booted.Store(true)
	return nil
}

// declare makes the server of the plane, and the parts over it. The server does not know
// them yet.
func (p *Plane) declare() (part.List, *authenticator, error) {
	o := &p.options
	if p.keys == nil {
		p.keys = o.openKeys()
	}
	roles := rbac.New(p.store)
	if p.authorizer = o.Authorizer; p.authorizer == nil {
		p.authorizer = auth.Authorizers{auth.AllowMasters{}, roles}
	}
	metrics := o.Metrics
	if metrics == nil {
		metrics = prometheus.NewRegistry()
	}
	server, err := apiserver.New(apiserver.Options{
		Store: p.store, Authorizer: p.authorizer, Classify: flow.NewClassifier(p.store).Classify,
		Entropy: o.Entropy, Limits: o.Limits, Version: o.Version, Metrics: metrics, Log: o.Log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("controlplane: make the server: %w", err)
	}
	p.server = server
	return p.parts(roles, metrics)
}

// Start listens, if asked to, and runs the built-in controllers. It returns when
// the plane is ready; ctx bounds only that. Starting twice is no error.
func (p *Plane) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case started:
		return nil
	case stopped:
		return ErrStopped
	}
	if p.options.Listen != "" {
		if err := p.listen(ctx); err != nil {
			return err
		}
	}
	p.state = started
	if p.options.ManualControllers {
		return nil
	}
	loop, cancel := context.WithCancel(context.Background())
	p.cancel, p.loop = cancel, make(chan struct{})
	go func() {
		defer close(p.loop)
		p.stepping.Lock()
		defer p.stepping.Unlock()
		if err := p.runner.Run(loop); err != nil && loop.Err() == nil {
			p.progress.failure.Store(&err)
			p.options.Log.Error("the built-in controllers have stopped", "err", err)
		}
	}()
	return nil
}

func (p *Plane) listen(ctx context.Context) (err error) {
	if err := p.mayListen(ctx, p.options.Listen); err != nil {
		return err
	}
	keys, err := p.keys()
	if err != nil {
		return err
	}
	l, err := listen(ctx, p.options.Listen, p.options.Hosts, keys, p.server.HTTPServer(), p.options.Log)
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
	if err := p.self.Announce(ctx, l.net.Addr().(*net.TCPAddr)); err != nil {
		return err
	}
	if err := p.self.Publish(ctx, trust(keys, p.options.Authentication.FrontProxy)); err != nil {
		return err
	}
	p.progress.announced.Store(true)
	return nil
}

// trust is how users of a plane show who they are.
func trust(keys *Keys, proxy *auth.FrontProxy) kubernetesservice.Trust {
	out := kubernetesservice.Trust{ClientCA: encodeCertificates(keys.clients()), Proxy: proxy}
	if proxy != nil {
		out.ProxyCA = encodeCertificates(proxy.Certificates.Authorities())
	}
	return out
}

// Stop ends watches, waits for the requests in flight until ctx ends, joins
// everything that runs and closes the store. Stopping twice returns the same.
func (p *Plane) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == stopped {
		return p.stopped
	}
	p.state = stopped
	if p.cancel != nil {
		p.cancel()
		<-p.loop
	}
	p.list.Close()
	p.stepping.Lock()
	p.runner.Close()
	p.stepping.Unlock()
	errs := []error{p.server.Stop(ctx)}
	p.webhooks.Close() // the requests that call them have ended
	if p.listener != nil {
		errs = append(errs, p.listener.close(ctx))
	}
	p.stopped = errors.Join(append(errs, p.closeStore())...)
	return p.stopped
}

func (p *Plane) closeStore() error {
	if !p.owned {
		return nil
	}
	return p.store.Close()
}

// Fork returns an independent plane with the same objects: not started, in
// memory, under the same options otherwise. It takes no longer for more objects.
func (p *Plane) Fork() (*Plane, error) {
	forker, ok := p.store.(storage.Forker)
	if !ok {
		return nil, ErrNotForkable
	}
	o := p.options
	o.DataDir, o.Listen, o.Metrics = "", "", nil
	// The copy goes its own way, but always the same one.
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(o.Entropy.UID())) // a hash does not fail
	o.Entropy = apiserver.SeededEntropy(seed.Sum64())
	o.Store = forker.Fork()
	fork, err := build(&Plane{options: o, store: o.Store, keys: p.keys}) // tokens in its objects stay valid
	if err != nil {
		return nil, errors.Join(err, o.Store.Close())
	}
	fork.owned = true
	return fork, nil
}

// Step lets every built-in controller act once on what it sees, and returns how
// many requests that took: 0 when all is settled. It fails with
// [ErrControllersRun] while they act by themselves.
func (p *Plane) Step(ctx context.Context) (int, error) { return p.stepped(ctx, p.runner.Advance) }

// Settle steps until nothing is left to do, under the same condition.
func (p *Plane) Settle(ctx context.Context) (int, error) { return p.stepped(ctx, p.runner.Settle) }

func (p *Plane) stepped(ctx context.Context, step func(context.Context) (int, error)) (int, error) {
	p.mu.Lock()
	now, running := p.state, p.loop != nil
	p.mu.Unlock()
	switch {
	case now == stopped:
		return 0, ErrStopped
	case running:
		return 0, ErrControllersRun
	}
	p.stepping.Lock()
	defer p.stepping.Unlock()
	return step(ctx)
}

// Idle waits until the built-in controllers that [Plane.Start] runs have nothing
// left to do, and returns the revision up to which that is so. Where they act on
// demand only, it returns the newest revision at once. What they will do when
// time has passed does not count.
func (p *Plane) Idle(ctx context.Context) (storage.Revision, error) {
	view, err := p.store.View(ctx, 0)
	if err != nil {
		return 0, fmt.Errorf("controlplane: %w", err)
	}
	p.mu.Lock()
	now, running := p.state, p.loop != nil
	p.mu.Unlock()
	switch {
	case now == stopped:
		return 0, ErrStopped
	case running:
		if err := p.runner.Idle(ctx, view.Revision()); err != nil {
			return 0, fmt.Errorf("controlplane: the built-in controllers do not come to rest: %w", err)
		}
	}
	return view.Revision(), nil
}

// URL returns where the listener is, such as "https://127.0.0.1:6443", or "".
func (p *Plane) URL() string {
	if url := p.address.Load(); url != nil {
		return *url
	}
	return ""
}

// Handler returns the HTTP side of the plane, for listeners of the caller's own.
func (p *Plane) Handler() http.Handler { return p.server.Handler() }

// RESTConfig returns a client configuration for the administrator, whose
// requests reach the plane without a socket.
func (p *Plane) RESTConfig() *rest.Config {
	return p.RESTConfigFor(&auth.User{Name: adminName, Groups: []string{auth.Masters, auth.Authenticated}})
}

// RESTConfigFor returns the same for another user.
func (p *Plane) RESTConfigFor(user *auth.User) *rest.Config {
	return &rest.Config{
		Host:      "https://in-process.invalid",
		Transport: p.server.RoundTripper(user),
		QPS:       -1, // the server has limits of its own
	}
}
