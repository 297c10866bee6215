// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/steertest/internal/hope"
	"github.com/steer-dev/steer/steertest/internal/output"
	"github.com/steer-dev/steer/trace"
)

// Wait returns the object of a key, "namespace/name" or "name" in [Env.Namespace],
// as soon as it exists and the condition holds; await.Ready is such a condition. It watches;
// nothing is polled. When the condition does not hold within the timeout the
// test fails and shows the last state.
func Wait[T client.Object](e *Env, key string, condition func(T) bool) T {
	e.Helper()
	obj, err := waitFor(e, key, func(obj T) bool { return !await.Gone(obj) && condition(obj) })
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	return obj
}

// WaitGone waits until the object of a key does not exist.
func WaitGone[T client.Object](e *Env, key string) {
	e.Helper()
	if obj, err := waitFor(e, key, await.Gone[T]); err != nil {
		kept := ""
		if !await.Gone(obj) {
			kept = output.Kept(obj)
		}
		e.Fatalf("steertest: %v%s", err, kept)
	}
}

func waitFor[T client.Object](e *Env, name string, condition func(T) bool) (T, error) {
	ctx, cancel := e.bounded()
	defer cancel()
	at, object := key[T](e, name), ""
	if gvk, err := client.KindOf(e.Client.Scheme(), empty[T]()); err == nil { // else the wait itself says so
		object = trace.Object{Kind: gvk.Kind, Namespace: at.Namespace, Name: at.Name}.String()
	}
	for {
		hoping, end := e.hopeless.Wait(ctx, object)
		obj, err := await.Object(hoping, e.Client, at, condition)
		if err != nil && ctx.Err() == nil && hoping.Err() != nil {
			lost := e.isHopeless(hoping, object)
			// What it waits for may have come meanwhile: that counts.
			if now, err := current[T](ctx, e, at); err == nil && condition(now) {
				end()
				return now, nil
			}
			if end(); !lost {
				continue
			}
		} else {
			end()
		}
		if err != nil {
			why := output.Running(e.recorder())
			if e.ctx.Err() == nil && !await.Gone(obj) {
				why += output.Blocking(e.ctx, e.Config, obj)
			}
			err = fmt.Errorf("%w%s", err, why)
		}
		return obj, err
	}
}

// isHopeless reports whether a wait has ended for lack of hope: not so while something else
// is still to be done for a terminal error, such as a change that the test has made.
func (e *Env) isHopeless(ctx context.Context, object string) bool {
	var end *hope.LostError
	if !errors.As(context.Cause(ctx), &end) {
		return false
	}
	if !controller.IsTerminal(end.Err) {
		return true
	}
	settling, cancel := e.bounded()
	defer cancel()
	if e.settle(settling) != nil {
		return false
	}
	last := trace.Record{}
	for r := range e.recorder().Records() {
		if r.Object.String() == object {
			last = r
		}
	}
	return last.Outcome == trace.Terminal
}

// current is an object as it is now, none if it does not exist.
func current[T client.Object](ctx context.Context, e *Env, at client.ObjectKey) (obj T, err error) {
	obj = empty[T]()
	if err = e.Client.Get(ctx, at, obj); apierrors.IsNotFound(err) {
		var none T
		return none, nil
	}
	return obj, err
}

// recorder is that of the operator; nil, which has nothing, while none runs.
func (e *Env) recorder() *trace.Recorder {
	if m := e.Manager(); m != nil {
		return m.Recorder()
	}
	return nil
}

// bounded is a context for one wait. It ends early when the operator cannot go
// on, with the reason as its cause.
func (e *Env) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(e.waits, e.timeout, fmt.Errorf("nothing came of it in %s", e.timeout))
}

// WaitList returns the list as soon as the condition holds for it.
func WaitList[L client.ObjectList](e *Env, condition func(L) bool, opts ...client.ListOption) L {
	e.Helper()
	ctx, cancel := e.bounded()
	defer cancel()
	list, err := await.List(ctx, e.Client, condition, opts...)
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	return list
}

// Settled waits until nothing is left to do: the built-in controllers have acted
// on all that was written, the operator has seen it, reconciled what it had to,
// retried what failed, and sent its events. After it a test can assert that
// something has not happened. What comes back after a second or more, and signals
// from outside the control plane, do not count. An operator that always finds
// something to do never settles, because it fails, asks to come back at once or
// wakes itself by what it writes: the test fails after the timeout and says which
// object that was about.
func (e *Env) Settled() {
	e.Helper()
	ctx, cancel := e.bounded()
	defer cancel()
	began := time.Now()
	if err := e.settle(ctx); err != nil {
		e.Fatalf("steertest: it does not settle: %v%s%s", err, output.Busiest(e.recorder(), began), output.Running(e.recorder()))
	}
}

// settle asks one part after the other, until none has written anything while
// the others were asked.
func (e *Env) settle(ctx context.Context) error {
	if e.Plane == nil {
		return e.settleOnServer(ctx)
	}
	if e.engine != nil {
		return e.settleDriven(ctx)
	}
	return e.settlePlane(ctx)
}

// settlePlane is settle on a control plane of the test's own.
func (e *Env) settlePlane(ctx context.Context) error {
	for {
		if e.manual {
			if _, err := e.Plane.Settle(ctx); err != nil {
				return err
			}
		}
		before, err := e.Plane.Idle(ctx)
		if err != nil {
			return err
		}
		for _, one := range e.working(ctx) {
			if err := one.manager.Idle(ctx); err != nil {
				return err
			}
		}
		after, err := e.Plane.Idle(ctx)
		if err != nil || before == after {
			return err
		}
	}
}

// Key reads "namespace/name" or "name".
func Key(s string) client.ObjectKey {
	if namespace, name, ok := strings.Cut(s, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	return client.ObjectKey{Name: s}
}
