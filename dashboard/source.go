// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"iter"
	"slices"
	"time"

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
	// Waiting are the requests that are ready and wait for a worker, by controller; nil:
	// it is not known.
	Waiting map[string]int
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

// Live is a source of the records of a recorder. waiting returns the requests that are
// ready, by controller; nil: it is not known. What the recorder had to overwrite between
// two looks is missed, and counted.
func Live(r *trace.Recorder, waiting func() map[string]int) Source {
	return &recorder{recorder: r, cursor: r.Cursor(), waiting: waiting}
}

type recorder struct {
	recorder *trace.Recorder
	cursor   *trace.Cursor
	waiting  func() map[string]int
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
	if r.waiting != nil {
		now.Waiting = r.waiting()
	}
	return now
}

// Objects answers what a control plane knows of an object. It is safe for concurrent use.
type Objects interface {
	// History returns the versions of an object, the newest last.
	History(ctx context.Context, object trace.Object) (History, error)
	// Tree returns the owners of an object and what it owns.
	Tree(ctx context.Context, object trace.Object) (Tree, error)
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
}
