// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"sync"
	"time"
)

// Limits of one record.
const (
	// maxRecord bounds the encoded accesses of one record, in bytes.
	maxRecord = 8 << 10
	// maxText bounds a name, a request or an error message, in bytes.
	maxText = 512
)

// redacted stands for the text of an error that concerns a Secret.
const redacted = "the message is withheld because it concerns a Secret"

// Start is what is known when a reconcile begins.
type Start struct {
	Controller string
	Object     Object
	Request    string
	Began      time.Time
	Waited     time.Duration
	Retries    int
	// Causes may be nil. It is read before Begin returns and not kept.
	Causes *Causes
	// Goroutine that runs it, as [Goroutine] returns it, so that its stack can be shown
	// meanwhile. 0: it is not known.
	Goroutine uint64
}

// End is what is known when a reconcile has ended.
type End struct {
	Outcome Outcome
	Took    time.Duration
	After   time.Duration
	Err     error
}

// Active is the record of a reconcile that is running. The zero value, and a nil
// pointer, record nothing. All methods are safe for concurrent use; after End
// they do nothing, so that a goroutine which outlives its reconcile cannot write
// into a foreign record. An Active must not be copied after [Recorder.Begin].
type Active struct {
	mu       sync.Mutex
	recorder *Recorder
	buffer   *buffer
	id       ID
	omitted  int
	secret   bool

	goroutine      uint64
	next, previous *Active // of those that are open; the recorder's
}

// ID of the reconcile.
func (a *Active) ID() ID {
	if a == nil {
		return ID{}
	}
	return a.id
}

// Recording reports whether the record is open, and kept: what would be noted need not be
// found out otherwise.
func (a *Active) Recording() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buffer != nil
}

// Note adds one access. A record that is full counts it as omitted.
func (a *Active) Note(access Access) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.buffer == nil {
		return
	}
	if access.Error != "" && access.secret() {
		access.Error = redacted
		a.secret = true
	}
	if len(a.buffer.b) > maxRecord {
		a.omitted++
		return
	}
	a.buffer.access(&access)
}

// End closes the record and hands it to the recorder.
func (a *Active) End(end End) {
	if a == nil {
		return
	}
	a.mu.Lock()
	b, omitted, secret := a.buffer, a.omitted, a.secret
	a.buffer = nil
	a.mu.Unlock()
	if b == nil {
		return
	}
	text := ""
	if end.Err != nil {
		text = redacted
		if !secret {
			text = end.Err.Error()
		}
	}
	a.recorder.active.remove(a)
	b.end(&end, omitted, text)
	a.recorder.append(b)
}

type contextKey struct{}

// NewContext returns a context that carries the record.
func NewContext(ctx context.Context, a *Active) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// FromContext returns the record that the context carries, or nil, which is
// safe to use.
func FromContext(ctx context.Context) *Active {
	a, _ := ctx.Value(contextKey{}).(*Active)
	return a
}

// Key is the context key under which [FromContext] looks, for context types of
// their own that answer it with a *Active in their Value method.
func Key() any { return contextKey{} }
