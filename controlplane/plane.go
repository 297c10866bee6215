// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core/flowcontrol"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/kubernetesservice"
	"github.com/steer-dev/steer/controlplane/leadership"
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
	list       component.List
	// several is nil where the plane has its store for itself.
	several *leadership.Server
	// local runs the controllers that each of several servers has.
	local *step.Runner
	// registered is how it is found among several; nil until it listens.
	registered *kubernetesservice.Registration

	stages component.Stages
	// upkeep is what the plane does for itself, and repeats where it is refused.
	upkeep *component.Upkeep

	// address is the URL of the listener, for requests: they must not wait for mu.
	address atomic.Pointer[string]

	// stepping is held while the runner is used, by the loop for all its life.
	stepping sync.Mutex

	// changing is held by Start and by Stop, one at a time, also while they send requests
	// or wait: it is taken with a context, and by them alone.
	changing chan struct{}
	// ends is done when Stop begins: a Start under way ends.
	ends context.Context // the life of the plane
	end  context.CancelFunc
	// listener, cancel, which ends the loop of the controllers, and stopped belong to the
	// holder of changing.
	listener *listener
	cancel   context.CancelFunc
	stopped  error

	// mu is held for moments, never across a request.
	mu    sync.Mutex
	state state
	loop  chan struct{} // closed when the loop of the controllers has ended; nil: there is none
}

// state of a plane's life.
type state int

const (
	serving state = iota // in process only
	started
	stopped
)

// sharedSchemas lets the planes of a process compile a schema once.
var sharedSchemas = sync.OnceValue(custom.NewSchemas)

// New opens the store and returns a plane that serves in process. It has no
// goroutine of its own until it is started.
func New(o Options) (*Plane, error) {
	return build(&Plane{options: o.withDefaults(), store: o.Store})
}

// build completes a plane that has its options, and its store and keys if those
// are not its own.
func build(p *Plane) (*Plane, error) {
	p.changing = make(chan struct{}, 1)
	p.ends, p.end = context.WithCancel(context.Background())
	o := &p.options
	if p.store == nil {
		store, err := openStore(o.DataDir, o.HistoryAge, o.Log)
		if err != nil {
			return nil, err
		}
		p.store, p.owned = store, true
	}
	if err := p.assemble(); err != nil {
		p.end()
		return nil, errors.Join(err, p.closeStore())
	}
	return p, nil
}

// openKeys returns what finds the plane's keys, once they are needed.
func (p *Plane) openKeys() func() (*Keys, error) {
	given, dir := p.options.Authentication.Keys, p.options.Authentication.KeyDir
	if dir == "" && p.options.DataDir != "" {
		dir = filepath.Join(p.options.DataDir, "pki")
	}
	return sync.OnceValues(func() (*Keys, error) {
		shared, _ := p.store.(storage.Elector)
		prepared := shared != nil && leadership.IsPrepared(shared)
		switch {
		case given != nil:
			return given.completed()
		case dir != "":
			return openKeys(dir, !prepared)
		case prepared:
			return nil, fmt.Errorf("%w: name the folder of the keys", errNoKeys)
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
	bindings := apiserver.Bindings{Authenticator: authentication, Admission: p.list.Admission(o.Metrics), Checks: p.list.Health()}
	if p.share(); p.several != nil {
		bindings.Leadership = p.several
		bindings.Checks = append(bindings.Checks, apiserver.Check{Name: "leadership", ReadyOnly: true, Run: p.several.Ready})
	}
	p.server.Bind(bindings)
	if err := p.list.Install(p.server); err != nil {
		return fmt.Errorf("controlplane: serve the built-in kinds: %w", err)
	}
	ctx := context.Background()
	controllers := p.list
	if p.several != nil {
		var each component.List
		each, controllers = p.list.OnEachServer()
		p.local = step.NewRunner(p.store, p.send, o.Log, each.Controllers()...)
	}
	p.runner = step.NewRunner(p.store, p.send, o.Log, controllers.Controllers()...)
	if p.several != nil { // the one that leads boots
		return p.several.CatchUp(ctx)
	}
	if err := errors.Join(p.boot(ctx, false), p.list.Load(ctx), p.list.Lead(ctx)); err != nil {
		return err
	}
	p.stages.Announced.Store(o.Listen == "")
	p.stages.Booted.Store(true)
	return nil
}

// declare makes the server of the plane, and the parts over it. The server does not know
// them yet.
func (p *Plane) declare() (component.List, *authenticator, error) {
	o := &p.options
	p.upkeep = component.NewUpkeep(o.Log)
	if p.keys == nil {
		p.keys = p.openKeys()
	}
	roles := rbac.New(p.store)
	p.authorizer = auth.Authorizers{auth.AllowMasters{}, roles}
	if o.Authorizer != nil {
		p.authorizer = rbac.Resolve(o.Authorizer, roles)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	server, err := apiserver.New(apiserver.Options{
		Store: p.store, Authorizer: p.authorizer, Audit: o.Audit, Classify: flowcontrol.NewClassifier(p.store).Classify,
		Entropy: o.Entropy, Limits: o.Limits, Version: o.Version, Flags: o.Flags, StrictTransportSecurity: o.StrictTransportSecurity, Metrics: o.Metrics, Log: o.Log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("controlplane: make the server: %w", err)
	}
	p.server = server
	return p.parts(roles)
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
