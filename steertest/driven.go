// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/steertest/internal/output"
	"github.com/steer-dev/steer/steertest/internal/stored"
	"github.com/steer-dev/steer/storage"
)

// prepareDriven makes the control plane of an environment that an engine drives one that
// does the same every time.
func (e *Env) prepareDriven() {
	e.Helper()
	o := &e.options.Plane
	if o.Store != nil || o.DataDir != "" {
		e.Fatalf("steertest: Options.Plane has a store of its own: an engine drives planes in memory; leave Store and DataDir out")
	}
	o.Store = storage.NewMemory(storage.MemoryOptions{})
	e.store = o.Store
	o.ManualControllers, e.manual = true, true
	if o.Entropy == nil {
		o.Entropy = apiserver.SeededEntropy(e.engine.Seed())
	}
	if a := &o.Authentication; a.Keys == nil && a.KeyDir == "" {
		keys, err := controlplane.TestKeys()
		if err != nil {
			e.Fatalf("steertest: %v", err)
		}
		a.Keys = keys
	}
}

// attach hands the environment to its engine, if it has one. What the test sends from now on
// passes that.
func (e *Env) attach() {
	e.Helper()
	if e.engine == nil {
		return
	}
	reader, err := stored.New(e.store, e.Client, e.Config)
	if err == nil {
		e.Cleanup(reader.Close)
		err = e.engine.Attach(&drivenEnv{Env: e, direct: e.Client, stored: reader})
	}
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	e.Config = e.drivenUser("user", e.Config)
	// What the server serves is known by now: a discovery less.
	c, err := client.New(e.Config, client.Options{Scheme: e.options.Scheme, FieldOwner: fieldOwner, Mapper: e.Client.Mapper()})
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	e.Client = c
}

// drivenUser is cfg for a user whose requests pass the engine, if there is one.
func (e *Env) drivenUser(name string, cfg *rest.Config) *rest.Config {
	if e.engine == nil {
		return cfg
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return e.engine.User(name, next) })
	return cfg
}

// drivenOperator is that of the operator after its n-th start.
func (e *Env) drivenOperator(n int) *rest.Config {
	if e.engine == nil {
		return e.operator
	}
	cfg := rest.CopyConfig(e.operator)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return e.engine.Operator(n, next) })
	return cfg
}

// settleDriven is settle where an engine has the built-in controllers act, and may have the
// operator start anew meanwhile.
func (e *Env) settleDriven(ctx context.Context) error {
	for {
		// Timers that are due at this instant come first: which of them is the first that a
		// goroutine sees is not to decide.
		time.Sleep(time.Millisecond)
		before, err := e.engine.Rest(ctx)
		if err != nil {
			return err
		}
		now := e.running.Load()
		if now != nil {
			idle, cancel := context.WithCancel(ctx)
			unbind := context.AfterFunc(now.ctx, cancel)
			err = now.manager.Idle(idle)
			unbind()
			cancel()
		}
		after, resting := e.engine.Rest(ctx)
		switch {
		case resting != nil:
			return resting
		case now != nil && now.ctx.Err() != nil:
			e.hold()() // until it has been started anew
		case e.running.Load() != now:
		case err != nil:
			return err
		case before == after:
			return nil
		}
	}
}

// drivenEnv is what an engine sees of an environment.
type drivenEnv struct {
	*Env
	direct client.Client // past the engine
	stored *stored.Reader
}

// Controllers implements driven.Env.
func (d *drivenEnv) Controllers() []string { return d.Plane.Controllers() }

// StepController implements driven.Env.
func (d *drivenEnv) StepController(ctx context.Context, name string) (int, error) {
	return d.Plane.StepController(ctx, name)
}

// StepDue implements driven.Env.
func (d *drivenEnv) StepDue() (time.Duration, bool) { return d.Plane.StepDue() }

// Revision implements driven.Env.
func (d *drivenEnv) Revision() uint64 { return uint64(d.store.Latest().Revision()) }

// Restart implements driven.Env.
func (d *drivenEnv) Restart(n int) error {
	defer d.hold()()
	if now := d.running.Load(); now == nil || now.n != n {
		return nil
	}
	d.stop()
	return d.start()
}

// Reconciles implements driven.Env.
func (d *drivenEnv) Reconciles(n int) []string {
	now := d.running.Load()
	if now == nil {
		return nil
	}
	all, _ := output.Reconciles(now.manager.Recorder())
	return all[max(len(all)-n, 0):]
}

// Settled implements driven.Env.
func (d *drivenEnv) Settled(ctx context.Context) error { return d.settle(ctx) }

// Changes implements driven.Env.
func (d *drivenEnv) Changes(ctx context.Context) ([]driven.Change, error) {
	return d.stored.Changes(ctx)
}

// Objects implements driven.Env.
func (d *drivenEnv) Objects(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	return d.stored.Objects(ctx)
}

// Kind implements driven.Env.
func (d *drivenEnv) Kind(group, resource string) string {
	r, err := d.direct.Mapper().ForResource(d.ctx, schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return ""
	}
	return r.GVK.Kind
}
