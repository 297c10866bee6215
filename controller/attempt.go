// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/controller/internal/children"
	"github.com/steer-dev/steer/trace"
)

// attempt is the context of one call of a reconciler. It carries the record of
// the flight recorder and the log, and knows which object is being worked on.
// It is one allocation and is not reused, so that what outlives the call cannot
// disturb another one.
type attempt struct {
	context.Context // it is one: of the controller, possibly with a deadline
	// stopping is the context of the controller.
	stopping context.Context // lives as long as the attempt
	record   trace.Active
	shared   *shared
	object   trace.Object
	request  string
	children *children.Memories // nil in attempts without an object
	// inventories are those that the sets of children have not written yet.
	inventories children.Pending

	once sync.Once
	log  *slog.Logger
	lazy slog.Logger // log, as logr finds it

	mu sync.Mutex
	// current is the object that the reconciler works on, before is the server's
	// version of it: what current is compared with. It is the cache's own object
	// while shares is set, and only read then.
	current, before client.Object
	shares          bool
}

type attemptKey struct{}

// newAttempt makes an attempt whose context is one of ctx.
func newAttempt(ctx context.Context, sh *shared, object trace.Object, request string) *attempt {
	a := &attempt{stopping: ctx, shared: sh, object: object, request: request}
	a.lazy = *slog.New((*attemptLog)(a))
	a.Context = logr.NewContextWithSlogLogger(ctx, &a.lazy)
	return a
}

// Value implements context.Context.
func (a *attempt) Value(key any) any {
	switch key {
	case attemptKey{}:
		return a
	case trace.Key():
		return &a.record
	case wire.AuditKey():
		if id := a.record.ID(); !id.IsZero() {
			return id
		}
		return nil
	}
	return a.Context.Value(key)
}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// logger returns the log of the attempt, which is made at the first call.
func (a *attempt) logger() *slog.Logger {
	a.once.Do(func() {
		log := a.shared.log
		if a.request != "" {
			log = log.With("request", a.request)
		} else {
			if a.object.Kind != "" {
				log = log.With(slog.Group(a.object.Kind, "namespace", a.object.Namespace, "name", a.object.Name))
			}
			log = log.With("namespace", a.object.Namespace, "name", a.object.Name)
		}
		a.log = log.With("reconcileID", a.record.ID().String())
	})
	return a.log
}

// work makes obj the object of the attempt. original is what it is a copy of,
// nil if it is not shared: then the attempt makes a copy of its own.
func (a *attempt) work(obj, original client.Object) {
	// A finalizer may have been written meanwhile.
	shares := original != nil && original.GetResourceVersion() == obj.GetResourceVersion()
	if !shares {
		original = copyOf(obj)
	}
	a.mu.Lock()
	a.current, a.before, a.shares = obj, original, shares
	a.mu.Unlock()
}

// revised tells the attempt that the server's version of its object has changed
// in a way that both versions take over.
func (a *attempt) revised(change func(client.Object)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil {
		return
	}
	if a.shares {
		a.before, a.shares = copyOf(a.before), false
	}
	change(a.current)
	change(a.before)
}

// noted takes an answer of the server that was written into the object itself,
// by a call of the reconciler: differences count from there on.
func (a *attempt) noted(call *client.Call) {
	obj, ok := call.Object.(client.Object)
	if !ok || call.Err != nil || call.DryRun {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && obj == a.current {
		a.before, a.shares = copyOf(obj), false
	}
}

func (a *attempt) versions() (before, current client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.before, a.current
}

func copyOf(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }

// observe is the [client.Observer] of all contexts that a controller hands out.
func observe(ctx context.Context, call *client.Call) {
	a := attemptOf(ctx)
	if a == nil {
		return
	}
	a.noted(call)
	if !a.record.Recording() {
		return
	}
	if access, ok := a.shared.calls.Of(call); ok {
		a.record.Note(access)
	}
}

type logKey struct{}

// attemptLog is the [slog.Handler] under which logr finds the log of an attempt. The
// log is made when the first line is written.
type attemptLog attempt

func (l *attemptLog) handler() slog.Handler { return (*attempt)(l).logger().Handler() }

// Enabled implements slog.Handler.
func (l *attemptLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *attemptLog) Handle(ctx context.Context, r slog.Record) error {
	return l.handler().Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *attemptLog) WithAttrs(attrs []slog.Attr) slog.Handler { return l.handler().WithAttrs(attrs) }

// WithGroup implements slog.Handler.
func (l *attemptLog) WithGroup(name string) slog.Handler { return l.handler().WithGroup(name) }

// Log returns the log of the reconcile that ctx belongs to: its lines carry the
// controller, the object and the reconcile's id. Elsewhere it is slog.Default().
// logr.FromContext and klog.FromContext return the same log within a reconcile.
func Log(ctx context.Context) *slog.Logger {
	if a := attemptOf(ctx); a != nil {
		return a.logger()
	}
	if log, ok := ctx.Value(logKey{}).(*slog.Logger); ok {
		return log
	}
	return slog.Default()
}

// ReconcileID returns the id of the reconcile that ctx belongs to, the zero value elsewhere.
func ReconcileID(ctx context.Context) trace.ID {
	if a := attemptOf(ctx); a != nil {
		return a.record.ID()
	}
	return trace.ID{}
}

// Emit sends an event for users from within a reconcile. Emit on transitions,
// not in every reconcile: changes of the condition Ready are told without it.
// Regarding is the object of the reconcile unless it is set.
func Emit(ctx context.Context, note UserEvent) {
	a := attemptOf(ctx)
	if a == nil || a.shared.deps.Events == nil {
		return
	}
	if note.Regarding == nil {
		_, note.Regarding = a.versions()
	}
	if note.Regarding == nil {
		return
	}
	if note.Action == "" {
		note.Action = note.Reason
	}
	note.Controller = a.shared.name
	a.shared.deps.Events.Record(note)
}

// statusTimeout bounds the write of a status after the time of its attempt ran
// out.
const statusTimeout = 10 * time.Second

// beyondDeadline returns a context for what must be done even though the time of
// the attempt is over. It still belongs to the attempt.
func (a *attempt) beyondDeadline() (context.Context, context.CancelFunc) {
	if a.Err() == nil {
		return a, func() {}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a), statusTimeout)
	stop := context.AfterFunc(a.stopping, cancel)
	return ctx, func() { stop(); cancel() }
}
