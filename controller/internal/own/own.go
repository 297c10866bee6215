// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package own recognises the events that stem from the writes which a controller makes for
// its reconciler, so that they cost no attempt.
package own

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/status"
)

// mostWrites bounds the writes per object that are remembered because no event
// has shown them yet.
const mostWrites = 8

// Writes recognises the events that stem from the writes which a controller
// makes for its reconciler: of the status, of finalizers, of inventories. They
// are no news to it: they must neither cost an attempt nor shorten a back-off.
//
// Each of these writes is a merge patch with the revision that it is based on as
// a precondition, so that it is exactly one step from a revision to the one in
// its answer. An event is the controller's own when such steps, and nothing else,
// lead from its old object to the new one. While a write is on its way, the
// events of its object wait for the answer; the object is being reconciled then,
// so nothing is late for it. Where the answer got lost, the content decides.
//
// It is safe for concurrent use. The zero value is ready.
type Writes struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]*steps
}

type steps struct {
	steps []step
	// flying is a write on its way, held are the events that wait for it.
	flying bool
	held   []held
}

// step is a write: from a revision to another one, which is empty when the
// answer got lost.
type step struct {
	from, to string
	patch    []byte
}

type held struct {
	event cache.Event
	send  func()
}

// Perform makes a write of an object: a merge patch on top of the
// revision from. write returns the revision of the answer.
func (o *Writes) Perform(key client.ObjectKey, from string, patch []byte, write func() (to string, err error)) error {
	o.mu.Lock()
	if o.byKey == nil {
		o.byKey = map[client.ObjectKey]*steps{}
	}
	s := o.byKey[key]
	if s == nil {
		s = &steps{}
		o.byKey[key] = s
	}
	s.flying = true
	o.mu.Unlock()

	to, err := write()

	o.mu.Lock()
	defer o.mu.Unlock()
	s.flying = false
	var refused apierrors.APIStatus // what fails within the server may have been written
	switch {
	case err == nil && to != from:
		s.add(step{from: from, to: to})
	case err != nil && !(errors.As(err, &refused) && refused.Status().Code < http.StatusInternalServerError):
		s.add(step{from: from, patch: patch})
	}
	held := s.held
	s.held = nil
	for _, h := range held {
		if !s.explain(&h.event) {
			h.send()
		}
	}
	o.tidy(key, s)
	return err
}

func (s *steps) add(step step) {
	if len(s.steps) == mostWrites {
		s.steps = s.steps[1:]
	}
	s.steps = append(s.steps, step)
}

// tidy forgets an object of which nothing is expected. The lock is held.
func (o *Writes) tidy(key client.ObjectKey, s *steps) {
	if !s.flying && len(s.steps) == 0 {
		delete(o.byKey, key)
	}
}

// Event passes an event on by send, unless it is the controller's own: at once,
// or when the answer of a write is there.
func (o *Writes) Event(e *cache.Event, send func()) {
	key := client.ObjectKeyFromObject(e.Object)
	o.mu.Lock()
	s := o.byKey[key]
	if s != nil {
		switch {
		case e.Type != cache.Updated:
			s.steps = nil // the object has gone, and another one may have come
		case s.flying:
			s.held = append(s.held, held{*e, send})
			o.mu.Unlock()
			return
		case s.explain(e):
			o.tidy(key, s)
			o.mu.Unlock()
			return
		}
		o.tidy(key, s)
	}
	o.mu.Unlock()
	send()
}

// explain reports whether own writes alone lead from the old object of an event
// to its new one, and forgets what is past. The lock is held.
func (s *steps) explain(e *cache.Event) bool {
	if e.Resync {
		return false
	}
	now := e.Old.GetResourceVersion()
	for i, step := range s.steps {
		if step.from != now {
			continue
		}
		switch {
		case step.to != "":
			now = step.to
		case leads(e.Old, step.patch, e.Object):
			now = e.Object.GetResourceVersion()
		}
		if now == e.Object.GetResourceVersion() {
			s.steps = s.steps[i+1:]
			return true
		}
	}
	return false
}

// leads reports whether a merge patch makes one object the other.
func leads(from client.Object, patch []byte, to client.Object) bool {
	var change map[string]any
	if json.Unmarshal(patch, &change) != nil {
		return false
	}
	before, ok1 := plain(from)
	after, ok2 := plain(to)
	return ok1 && ok2 && reflect.DeepEqual(withoutRevision(status.ApplyMergePatch(before, change)), withoutRevision(after))
}

// plain is the JSON form of an object.
func plain(obj client.Object) (content map[string]any, ok bool) {
	data, err := json.Marshal(obj)
	return content, err == nil && json.Unmarshal(data, &content) == nil
}

// withoutRevision takes off what every write changes.
func withoutRevision(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	delete(metadata, "managedFields")
	return content
}
