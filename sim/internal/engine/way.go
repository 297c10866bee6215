// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/steer-dev/steer/sim/internal/gate"
	"github.com/steer-dev/steer/sim/internal/plan"
)

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// way is that of a user, or of one start of the operator, to the control plane: through the
// gate, and then, as long as nothing says otherwise, to the server.
type way struct {
	engine *engine
	actor  string
	start  *start // nil for a user
	gated  http.RoundTripper
	next   http.RoundTripper
}

// call is a request on its way. It is in the context of the request.
type call struct {
	// last reports that the answer is the last thing that a start of the operator gets.
	last bool
}

type callKey struct{}

// RoundTrip implements http.RoundTripper.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.state() != running {
		return nil, refuse(r)
	}
	c := &call{}
	resp, err := w.gated.RoundTrip(r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	switch {
	case c.last:
		w.setState(crashed)
		w.engine.restart(w.start.n)
	case err == nil && w.state() != running:
		_ = resp.Body.Close()
		return nil, errCrashed
	}
	return resp, err
}

// refuse ends a request that is not sent.
func refuse(r *http.Request) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return errCrashed
}

func (w *way) state() startState {
	if w.start == nil {
		return running
	}
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return w.start.state
}

func (w *way) setState(s startState) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.start.state = s
}

// send is called when the gate has let a request through: nothing else in the bubble goes
// on meanwhile.
func (w *way) send(r *http.Request) (*http.Response, error) {
	if w.state() != running {
		return nil, refuse(r)
	}
	t, ok := targetOf(r)
	if !ok || t.verb == "" {
		return w.next.RoundTrip(r)
	}
	if !t.breaks() {
		defer w.engine.observe(r.Context(), w.actor)
		return w.next.RoundTrip(r)
	}
	body, r, err := gate.BodyOf(r)
	if err != nil {
		return nil, err
	}
	return w.write(r, t, body)
}

// write makes a write at which there may be a fault.
func (w *way) write(r *http.Request, t target, body []byte) (*http.Response, error) {
	e := w.engine
	e.mu.Lock()
	name := e.namer.write(w.actor, t, body)
	e.mu.Unlock()
	at := Write{Seen: plan.Seen{Write: name}, At: time.Since(e.began).String()}
	if w.start != nil {
		at.Start = w.start.n
	}
	kind := e.due(w.start, name)
	if kind != 0 {
		at.Fault = kind.String()
	}
	if kind != 0 && !kind.Commits() {
		e.note(w.start, at)
		if kind == plan.CrashBefore {
			w.crash()
			return nil, refuse(r)
		}
		at.Status = kind.Status()
		return refusal(r, kind, t), nil
	}
	before := e.env.Revision()
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		e.note(w.start, at)
		return nil, err
	}
	answer, err := gate.AnswerOf(resp)
	if err != nil {
		return nil, err
	}
	at.Effective, at.Status = e.env.Revision() != before, resp.StatusCode
	e.mu.Lock()
	e.namer.done(t, body, answer)
	e.mu.Unlock()
	e.observe(r.Context(), w.actor)
	if kind == 0 && at.Effective {
		if kind = e.dueAfter(w.start); kind != 0 {
			at.Fault = kind.String()
		}
	}
	e.note(w.start, at)
	switch kind {
	case plan.CrashAfter:
		c, _ := r.Context().Value(callKey{}).(*call)
		c.last = true
		w.setState(answering)
	case plan.CrashDuring:
		w.crash()
		return nil, errCrashed
	case plan.TimeoutAfter:
		return refusal(r, kind, t), nil
	}
	return resp, nil
}

// crash ends the start of the operator that this way is of.
func (w *way) crash() {
	w.setState(crashed)
	w.engine.restart(w.start.n)
}

// due returns the fault that happens at a write, by its name or, if it is not done, by its
// number since the restart; 0 for none. s is nil for a user.
func (e *engine) due(s *start, name plan.Write) plan.FaultType {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == nil {
		return 0
	}
	s.sent++
	return e.meetLocked(func(f plan.Fault) bool {
		if f.Restart > 0 {
			return !f.Type.Commits() && s.n > 1 && s.effective+1 == f.Restart
		}
		return f.At == name
	})
}

// dueAfter returns the fault that happens at an effective write by its number since the
// restart.
func (e *engine) dueAfter(s *start) plan.FaultType {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == nil {
		return 0
	}
	return e.meetLocked(func(f plan.Fault) bool {
		return f.Restart > 0 && f.Type.Commits() && s.n > 1 && s.effective+1 == f.Restart
	})
}

// meetLocked returns the first fault that has not happened yet, if its time has come.
func (e *engine) meetLocked(now func(plan.Fault) bool) plan.FaultType {
	for i := range e.faults {
		f := &e.faults[i]
		if f.met {
			continue
		}
		if now(f.Fault) {
			f.met = true
			return f.Type
		}
		if f.Restart > 0 || i+1 < len(e.faults) && e.faults[i+1].Restart > 0 {
			return 0 // what follows is about the start that it makes
		}
	}
	return 0
}

// note notes a write, and ends a run that goes round in circles.
func (e *engine) note(s *start, w Write) {
	e.mu.Lock()
	e.writes = append(e.writes, w)
	over := false
	if s != nil && w.Effective {
		s.effective++
		over = e.loop.turns(time.Now(), w.Write) || len(e.writes) > e.limits.Writes
	}
	e.mu.Unlock()
	if over {
		e.neverSettles("it writes without end")
	}
}

// neverSettles ends the run of an operator that writes without end, and tells what it does:
// what it writes, and which reconciles of which objects cause one another.
func (e *engine) neverSettles(why string) {
	reconciles := e.env.Reconciles(shownReconciles)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.troubleLocked(NeverSettles, fmt.Sprintf("%s, so far %d times:\n%s\nthe last reconciles:\n  %s",
		why, len(e.writes), e.loop.busiest(), strings.Join(reconciles, "\n  ")))
	e.silenceLocked()
}

// shownReconciles is how many tell of writes that feed each other.
const shownReconciles = 4

// Outside implements driven.Engine.
func (e *engine) Outside(what string, do func() error) error {
	e.mu.Lock()
	s := e.starts[e.now]
	if s == nil || s.state != running {
		e.mu.Unlock()
		return errCrashed
	}
	name := e.namer.counter.Next(plan.Write{Verb: plan.Outside, Name: what})
	e.mu.Unlock()
	w := &way{engine: e, actor: plan.Operator, start: s}
	at := Write{Seen: plan.Seen{Write: name}, At: time.Since(e.began).String(), Start: s.n}
	kind := e.due(s, name)
	if kind != 0 {
		at.Fault = kind.String()
	}
	var err error
	if kind == 0 || kind.Commits() {
		err = do()
		at.Effective = err == nil
	}
	e.note(s, at)
	switch {
	case kind == 0:
		return err
	case kind.Crashes():
		w.crash()
		return errCrashed
	}
	return fmt.Errorf("sim: %s: %s", what, kind) // no caller tells it apart
}
