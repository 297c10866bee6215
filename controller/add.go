// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/access"
	"github.com/steer-dev/steer/controller/internal/status"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// Object is a pointer to the Go type of a kind.
type Object interface {
	comparable
	client.Object
}

// Add makes a manager run a reconciler of the objects of a kind, which is that of
// the parameter of Reconcile. Every mistake that can be known by now is an error.
// For reconcilers of requests see [AddRequests].
func Add[T Object](m Manager, r Reconciler[T], options ...Option) error {
	s := &settings[Request]{}
	for _, option := range options {
		option.apply(s)
	}
	deps, err := depsOf(m)
	if err == nil {
		reconcile := func(ctx context.Context, obj client.Object) (Result, error) { return r.Reconcile(ctx, any(obj).(T)) }
		var e engine
		if e, err = buildObjects(deps, s, reflect.TypeFor[T](), reconcile); err == nil {
			return addEngine(m, e)
		}
	}
	return fmt.Errorf("add controller for %T: %w", r, err)
}

// AddRequests makes a manager run a reconciler of requests: [Request], or any other
// comparable type that is no object. The reconciler reads for itself. The typed
// options [Watches] and [From], at least one of them, say where its requests come
// from; those of another type of requests than the reconciler's do not compile. The
// name is as for [Name].
//
//	controller.AddRequests(m, "tenants", r, controller.Typed(controller.From(source)), controller.Concurrency(2))
func AddRequests[K comparable](m Manager, name string, r Reconciler[K], typed []TypedOption[K], options ...RequestOption) error {
	s := &settings[K]{}
	for _, option := range typed {
		option.apply(s)
	}
	for _, option := range options {
		option.set(&s.common)
	}
	s.name = name
	deps, err := depsOf(m)
	if err == nil {
		var e engine
		if e, err = buildRequests(deps, s, r); err == nil {
			return addEngine(m, e)
		}
	}
	return fmt.Errorf("add controller for %T: %w", r, err)
}

// engine is a controller of any requests.
type engine interface {
	LeaderElected
	Named
	stopSources()
}

// addEngine hands a controller to its manager.
func addEngine(m Manager, e engine) error {
	if err := m.Add(e); err != nil {
		e.stopSources()
		return fmt.Errorf("add controller %s: %w", e.Name(), err)
	}
	return nil
}

// depsOf returns what the manager shares.
func depsOf(m Manager) (Deps, error) {
	deps := m.Deps()
	if deps.Client == nil || deps.Informers == nil {
		return deps, errors.New("the manager has no client or no informers")
	}
	if deps.Log == nil {
		deps.Log = slog.Default()
	}
	return deps, nil
}

// buildRequests makes a controller of requests.
func buildRequests[K comparable](deps Deps, s *settings[K], r Reconciler[K]) (engine, error) {
	of := reflect.TypeFor[K]()
	switch {
	case of.Implements(reflect.TypeFor[client.Object]()):
		return nil, fmt.Errorf("a %v is an object and no request: use controller.Add", of)
	case s.name == "":
		return nil, fmt.Errorf("a reconciler of %v has no kind to be named after: give AddRequests a name", of)
	case len(s.sources) == 0:
		return nil, errors.New("nothing would ever request anything: pass AddRequests a controller.Typed with Watches or From")
	}
	sh := &shared{name: s.name, owner: s.owner(deps), deps: deps, log: deps.Log.With("controller", s.name), calls: access.NewCalls()}
	describe := func(key K) (trace.Object, string) {
		if req, ok := any(key).(Request); ok {
			return trace.Object{Namespace: req.Namespace, Name: req.Name}, ""
		}
		return trace.Object{}, fmt.Sprint(key)
	}
	process := func(a *attempt, key K) (Result, error) { return r.Reconcile(a, key) }
	return newController(sh, s, nil, process, describe)
}

// owner of the fields that the controller writes.
func (s *common) owner(deps Deps) string { return cmp.Or(s.fieldOwner, deps.FieldOwner, s.name) }

// newController makes the engine, with the sources of the settings after the
// given ones.
func newController[K comparable](
	sh *shared, s *settings[K], sources []Source[K],
	process func(*attempt, K) (Result, error), describe func(K) (trace.Object, string),
) (*controller[K], error) {
	c := &controller[K]{
		shared: sh, concurrency: max(s.concurrency, 1), timeout: s.timeout, everywhere: s.everywhere,
		sources: sources, process: process, describe: describe, working: make(chan struct{}),
	}
	for _, o := range s.sources {
		source, err := o.open(sh, sh.deps)
		if err != nil {
			c.stopSources()
			return nil, err
		}
		c.sources = append(c.sources, prioritize(source, o.priority))
	}
	options := queue.Options[K]{Backoff: s.backoff, MaxRetries: s.maxRetries}
	if err := limit(&options, s); err != nil {
		c.stopSources()
		return nil, err
	}
	if sh.deps.Metrics != nil {
		options.Observer = forward{&c.instruments}
	}
	c.queue = queue.New(options)
	if sh.deps.Metrics != nil {
		var err error
		if c.instruments, err = sh.deps.Metrics(c); err != nil {
			c.stopSources()
			return nil, err
		}
	}
	return c, nil
}

// forward passes measurements on to instruments, which are made after the queue
// because they read it.
type forward struct{ to *Instruments }

func (f forward) Waited(d time.Duration) { (*f.to).Waited(d) }
func (f forward) Worked(d time.Duration) { (*f.to).Worked(d) }

// buildObjects makes the controller of a kind.
func buildObjects(deps Deps, s *settings[Request], of reflect.Type, reconcile func(context.Context, client.Object) (Result, error)) (engine, error) {
	if of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("Reconcile takes a %v: take a pointer to a Go type of a kind", of)
	}
	example := reflect.New(of.Elem()).Interface().(client.Object)
	if s.gvk.Kind != "" {
		example.GetObjectKind().SetGroupVersionKind(s.gvk)
	}
	gvk, err := client.KindOf(deps.Client.Scheme(), example)
	if err != nil {
		return nil, err
	}
	if s.gvk.Kind != "" && s.gvk != gvk {
		return nil, fmt.Errorf("OfKind(%v) contradicts %v, which is %v", s.gvk, of, gvk)
	}
	if s.name == "" {
		s.name = strings.ToLower(gvk.Kind)
	}
	if err := s.check(of); err != nil {
		return nil, err
	}
	if s.failures {
		if _, err := status.ConditionsOf(example); err != nil {
			return nil, err
		}
	}
	sh := &shared{
		calls: access.NewCalls(),
		name:  s.name, owner: s.owner(deps), deps: deps, gvk: gvk, silent: s.silent,
		log: deps.Log.With("controller", s.name, "controllerGroup", gvk.Group, "controllerKind", gvk.Kind),
	}
	example.GetObjectKind().SetGroupVersionKind(gvk)
	sh.example = example
	o := &objects{
		shared: sh, of: of.Elem(), reconcile: reconcile, finalizers: s.finalizers, retired: s.retired, onGone: s.onGone, paused: s.paused,
		failures: s.failures, differ: trace.Differ{Without: "status"},
	}
	keep := make([]Predicate[client.Object], len(s.where))
	for i := range s.where {
		keep[i] = s.where[i].keep
	}
	self, err := reconciledKind(sh, example, keep...)
	if err != nil {
		return nil, err
	}
	return newController(sh, s, []Source[Request]{prioritize(self, s.priority)}, o.process, o.describe)
}

// check refuses options that do not fit objects of a type.
func (s *settings[K]) check(of reflect.Type) error {
	seen := map[string]bool{}
	for _, f := range s.finalizers {
		if f.of != of {
			return fmt.Errorf("the function of finalizer %s takes a %v, but Reconcile a %v", f.name, f.of, of)
		}
		if problems := validation.IsQualifiedName(f.name); len(problems) > 0 || !strings.Contains(f.name, "/") {
			return fmt.Errorf("the finalizer %q needs a name like example.com/cleanup", f.name)
		}
		if seen[f.name] {
			return fmt.Errorf("the finalizer %s is there twice", f.name)
		}
		seen[f.name] = true
	}
	for _, name := range s.retired {
		if seen[name] {
			return fmt.Errorf("the finalizer %s is in use and retired at once", name)
		}
	}
	for _, p := range s.where {
		if p.of != of {
			return fmt.Errorf("a predicate of Where takes a %v, but Reconcile a %v", p.of, of)
		}
	}
	return nil
}
