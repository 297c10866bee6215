// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/steer-dev/steer/dashboard/internal/model"
	"github.com/steer-dev/steer/trace"
)

// Source gives a page its records. One goroutine at a time calls it.
type Source interface {
	// New yields the records that it has not yielded before, in the order in which the
	// attempts ended.
	New() iter.Seq[trace.Record]
	// Now is what the operator does at the moment.
	Now() Now
}

// Now is what an operator does at a moment, beside its records.
type Now struct {
	// Running are the attempts that have not ended; nil: they are not known.
	Running []trace.Record
	// Queued is what waits in the queues of the controllers; nil: it is not known.
	Queued []trace.Queued
	// Ended says why no more records come; empty while they do.
	Ended string
	// Trouble says what could not be read; empty where all could.
	Trouble string
}

// Recording is a source of records that are there already, and gets no more.
func Recording(records []trace.Record, why string) Source { return &recorded{records, why} }

type recorded struct {
	records []trace.Record
	why     string
}

func (r *recorded) New() iter.Seq[trace.Record] {
	records := r.records
	r.records = nil // the page has them
	return slices.Values(records)
}

func (r *recorded) Now() Now { return Now{Ended: r.why} }

// Live is a source of the records of a recorder. queued lists what waits in the queues, at
// most so many requests of each state, such as manager.Manager.Queued; nil: it is not known.
// What the recorder had to overwrite between two looks is missed, and counted.
func Live(r *trace.Recorder, queued func(most int) []trace.Queued) Source {
	return &recorder{recorder: r, cursor: r.Cursor(), queued: queued}
}

type recorder struct {
	recorder *trace.Recorder
	cursor   *trace.Cursor
	queued   func(most int) []trace.Queued
}

func (r *recorder) New() iter.Seq[trace.Record] {
	return func(yield func(trace.Record) bool) {
		for {
			encoded, missed, _ := r.cursor.Next()
			if encoded == nil {
				return
			}
			record, err := trace.Decode(encoded)
			if err != nil {
				continue // it cannot be: the recorder wrote it
			}
			if record.Missed = missed; !yield(record) {
				return
			}
		}
	}
}

func (r *recorder) Now() Now {
	now := Now{Running: append([]trace.Record{}, r.recorder.Running()...)}
	if r.queued != nil {
		now.Queued = r.queued(model.MostEntries)
	}
	return now
}

// Objects answers what a control plane knows of an object. It is safe for concurrent use.
type Objects interface {
	// History returns the versions of an object, the newest last.
	History(ctx context.Context, object trace.Object) (History, error)
	// Tree returns the owners of an object and what it owns.
	Tree(ctx context.Context, object trace.Object) (Tree, error)
	// List returns all objects, for a page without an operator: those that are not ready, then
	// the newest. They are not to be changed.
	List(ctx context.Context) (List, error)
}

// History is what is known of the versions of an object.
type History struct {
	Versions []Version
	// End says why there is nothing older.
	End string
}

// Version is one of an object, and who wrote it. What is empty is not known.
type Version struct {
	Revision string
	Time     time.Time
	// Change is created, updated or deleted.
	Change        string
	Manager, User string
	Reconcile     trace.ID
	Fields        []Field
	// Conditions of the object in this version; nil if its content is not known.
	Conditions []Condition
	// Missing says what is not known of it, and what would tell.
	Missing []string
}

// Field is one that differs from the version before, with its values as JSON; both are
// empty where they are not known.
type Field struct{ Path, Old, New string }

// Condition is one of a status.
type Condition struct{ Type, Status, Reason, Message string }

// List are objects, without what they own.
type List struct {
	Nodes []Node
	// Missing says what could not be listed.
	Missing []string
}

// Tree is an object with its owners and what it owns.
type Tree struct {
	// Owners lead from the object to what owns it, the nearest first.
	Owners []Node
	Root   Node
	// Missing says what could not be looked at.
	Missing []string
}

// Node is an object in a tree.
type Node struct {
	Object trace.Object
	// State is the condition that tells, in words, and Message its message.
	State, Message string
	// Blocked reports that the object, or one below it, is not ready.
	Blocked bool
	// NotReady reports that it is the object itself.
	NotReady bool
	// Children, the blocked first.
	Children []Node
	// Created is when it was; zero: not known.
	Created time.Time
}
