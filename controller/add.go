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
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// Add makes a manager run a reconciler. What is reconciled is inferred from the
// parameter of Reconcile: objects of a kind, or requests of a comparable type.
// Every mistake that can be known by now is an error.
func Add[Q comparable](m Manager, r Reconciler[Q], options ...Option) error {
	runnable, err := build(m.Base(), r, options)
	if err != nil {
		return fmt.Errorf("add controller for %T: %w", r, err)
	}
	if err := m.Add(runnable); err != nil {
		runnable.stopSources()
		return fmt.Errorf("add controller %s: %w", runnable.Name(), err)
	}
	return nil
}

// engine is a controller of any requests.
type engine interface {
	LeaderElected
	Named
	stopSources()
}

func build[Q comparable](base Base, r Reconciler[Q], options []Option) (engine, error) {
	var s settings
	for _, option := range options {
		option(&s)
	}
	if base.Client == nil || base.Informers == nil {
		return nil, errors.New("the manager has no client or no informers")
	}
	if base.Log == nil {
		base.Log = slog.Default()
	}
	of := reflect.TypeFor[Q]()
	if of.Implements(reflect.TypeFor[client.Object]()) {
		reconcile := func(ctx context.Context, obj client.Object) (Result, error) { return r.Reconcile(ctx, any(obj).(Q)) }
		return buildObjects(base, &s, of, reconcile)
	}
	if err := s.refuseObjectOptions(); err != nil {
		return nil, err
	}
	if s.name == "" {
		return nil, fmt.Errorf("a reconciler of %v has no kind to be named after: add controller.Name(\"...\")", of)
	}
	sh := &shared{name: s.name, owner: s.owner(base), base: base, log: base.Log.With("controller", s.name)}
	describe := func(key Q) (trace.Object, string) {
		if req, ok := any(key).(Request); ok {
			return trace.Object{Namespace: req.Namespace, Name: req.Name}, ""
		}
		return trace.Object{}, fmt.Sprint(key)
	}
	process := func(a *attempt, key Q) (Result, error) { return r.Reconcile(a, key) }
	return newController(sh, &s, nil, process, describe)
}

// owner of the fields that the controller writes.
func (s *settings) owner(base Base) string { return cmp.Or(s.fieldOwner, base.FieldOwner, s.name) }

// refuseObjectOptions refuses the options that only objects can have.
func (s *settings) refuseObjectOptions() error {
	switch {
	case len(s.finalizers) > 0 || len(s.retired) > 0:
		return errors.New("a finalizer needs a reconciler of objects: give Reconcile the object as its parameter")
	case s.onGone != nil:
		return errors.New("OnGone needs a reconciler of objects: a reconciler of requests sees for itself what is gone")
	case s.paused != "" || s.silent:
		return errors.New("Paused and NoConditionEvents are about objects, and requests have none")
	case len(s.where) > 0:
		return errors.New("Where filters the reconciled kind, and requests have none: pass predicates to Watches")
	case s.gvk.Kind != "":
		return errors.New("OfKind needs a reconciler of unstructured or metadata-only objects")
	case s.priority != 0:
		return errors.New("Priority without sources is of the events of the reconciled kind, and requests have none: pass it Watches or From")
	case len(s.sources) == 0:
		return errors.New("nothing would ever request anything: add Watches or From")
	}
	return nil
}

// newController makes the engine, with the sources of the settings after the
// given ones.
func newController[K comparable](
	sh *shared, s *settings, sources []Source[K],
	process func(*attempt, K) (Result, error), describe func(K) (trace.Object, string),
) (*controller[K], error) {
	c := &controller[K]{
		shared: sh, concurrency: max(s.concurrency, 1), timeout: s.timeout, everywhere: s.everywhere,
		sources: sources, process: process, describe: describe, working: make(chan struct{}),
	}
	for i, open := range s.sources {
		made, err := open(sh, sh.base)
		if err == nil {
			source, ok := made.(Source[K])
			if ok {
				c.sources = append(c.sources, prioritize(source, s.priorities[i]))
				continue
			}
			err = fmt.Errorf("a source makes other requests (%T) than the reconciler takes (%v)", made, reflect.TypeFor[K]())
			if stopper, ok := made.(interface{ Stop() }); ok {
				stopper.Stop()
			}
		}
		c.stopSources()
		return nil, err
	}
	options := queue.Options[K]{Backoff: s.backoff, MaxRetries: s.maxRetries}
	if err := limit(&options, s); err != nil {
		c.stopSources()
		return nil, err
	}
	if sh.base.Metrics != nil {
		options.Observer = forward{&c.instruments}
	}
	c.queue = queue.New(options)
	if sh.base.Metrics != nil {
		var err error
		if c.instruments, err = sh.base.Metrics(c); err != nil {
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
func buildObjects(base Base, s *settings, of reflect.Type, reconcile func(context.Context, client.Object) (Result, error)) (engine, error) {
	if of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("Reconcile takes a %v: take a pointer to a Go type of a kind", of)
	}
	example := reflect.New(of.Elem()).Interface().(client.Object)
	if s.gvk.Kind != "" {
		example.GetObjectKind().SetGroupVersionKind(s.gvk)
	}
	gvk, err := client.KindOf(base.Client.Scheme(), example)
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
	sh := &shared{
		name: s.name, owner: s.owner(base), base: base, gvk: gvk, silent: s.silent,
		log: base.Log.With("controller", s.name, "controllerGroup", gvk.Group, "controllerKind", gvk.Kind),
	}
	example.GetObjectKind().SetGroupVersionKind(gvk)
	sh.example = example
	o := &objects{
		shared: sh, of: of.Elem(), reconcile: reconcile, finalizers: s.finalizers, retired: s.retired, onGone: s.onGone, paused: s.paused,
		differ: trace.Differ{Without: "status"},
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
func (s *settings) check(of reflect.Type) error {
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
