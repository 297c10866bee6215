// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// Manager is the process that a controller is added to; *manager.Manager is
// one.
type Manager interface {
	// Deps returns what the controllers of the manager share. It may be called
	// before the manager starts.
	Deps() Deps
	// Add makes the manager run a runnable, at once when it has started. It
	// refuses a second runnable that is a [Named] of the same name.
	Add(r Runnable) error
}

// Runnable is a part of a manager.
type Runnable interface {
	// Start runs the part until ctx ends, and returns once everything that it
	// started has ended. An error ends the whole manager.
	Start(ctx context.Context) error
}

// LeaderElected is a [Runnable] that says whether it runs on the leader only.
// Controllers are; those that do not say so count as leader-only as well.
type LeaderElected interface {
	Runnable
	NeedLeaderElection() bool
}

// Named is a [Runnable] with a name, which is unique in its manager: it labels
// metrics and log lines.
type Named interface {
	Runnable
	Name() string
}

// Deps are what the controllers of one manager share.
type Deps struct {
	// Client reads from the cache and writes to the server. It is required.
	Client client.Client
	// Informers hands out the informers behind Client. It is required.
	Informers cache.Informers
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
	// Trace records reconciles; nil records nothing.
	Trace *trace.Recorder
	// Events takes the events that controllers emit; nil drops them.
	Events EventRecorder
	// Metrics makes the instruments of a controller when it is added; its error
	// refuses the controller. nil measures nothing.
	Metrics func(ControllerInfo) (Instruments, error)
	// FieldOwner owns the fields that controllers write; empty means that each
	// owns them under its own name.
	FieldOwner string
	// OnError is called with every error that ends an attempt, beside the log and
	// the retry; see manager.Options.OnError. nil is not called.
	OnError func(error)
}

// ControllerInfo is a controller as its metrics see it.
type ControllerInfo interface {
	Name() string
	// Example is an empty object of the reconciled kind, which it names; nil for
	// controllers of other requests.
	Example() client.Object
	// Concurrency is the number of workers.
	Concurrency() int
	// Stats of the controller's queue, to be read when metrics are collected:
	// its Running is the number of active workers.
	Stats() queue.Stats
	// Queued lists what waits, at most so many requests of each state; it looks at all of them.
	Queued(most int) trace.Queued
}

// Instruments take what a controller measures, apart from what can be read from
// [ControllerInfo] at any time. They must be fast and safe for concurrent use.
type Instruments interface {
	// Waited and Worked measure the queue.
	queue.Observer
	// Reconciled is told of every finished attempt.
	Reconciled(outcome trace.Outcome, took time.Duration)
}

// EventRecorder takes events for users to read. It must not block.
type EventRecorder interface {
	Record(e UserEvent)
}

// UserEvent is an event for users, in the terms of events.k8s.io.
type UserEvent struct {
	// Regarding is the object that the event is about.
	Regarding client.Object
	// Related is a second object, often a child; nil means none.
	Related client.Object
	// Warning makes it a Warning; otherwise it is Normal.
	Warning bool
	// Reason is why, in UpperCamelCase, at most 128 characters.
	Reason string
	// Action is what was done or tried, in UpperCamelCase, at most 128
	// characters; empty means the reason.
	Action string
	// Note is for people, at most 1,024 bytes.
	Note string
	// Controller is the name of the controller that says so.
	Controller string
}
