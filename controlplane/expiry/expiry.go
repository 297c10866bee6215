// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expiry deletes events that have not been written for an hour.
//
// The [Expirer] is a [step.Controller] that mostly sleeps: it knows when every
// event was last written, and asks to be woken when the oldest is due. The time
// of the last write is in the object itself, the newest of creation and record
// of field owners, so that an event lives as long after a restart as without one.
// A deletion holds for the version that was due: a write in between saves the
// event for another hour.
package expiry

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Life of an event after its last write.
const Life = time.Hour

// bucket holds events, whichever group they were written through.
const bucket = "events"

// Expirer deletes events when their time has come.
type Expirer struct {
	// current is what is known of every event.
	current map[storage.Key]version
	// due holds versions of events, the next to expire first. Those that are no
	// longer current are dropped when they come to the top.
	due queue
}

// version is one version of an event.
type version struct {
	key      storage.Key
	revision storage.Revision
	due      time.Time
}

var (
	_ step.Controller = (*Expirer)(nil)
	_ step.Waker      = (*Expirer)(nil)
)

// New returns an expirer that knows of no events.
func New() *Expirer { return &Expirer{current: map[storage.Key]version{}} }

// Name implements [step.Controller].
func (x *Expirer) Name() string { return "event expiry" }

// Reset implements [step.Controller].
func (x *Expirer) Reset(view storage.View) {
	*x = *New()
	for rec := range view.Ascend(bucket, "", "") {
		x.put(rec)
	}
}

// Filter implements [step.Controller].
func (*Expirer) Filter(e storage.Event) bool { return e.Record.Key.Bucket == bucket }

// Handle implements [step.Controller].
func (x *Expirer) Handle(e storage.Event) {
	if e.Deleted {
		delete(x.current, e.Record.Key)
		return
	}
	x.put(e.Record)
}

// put takes in a version of an event. One that is being deleted is on its way.
func (x *Expirer) put(rec *storage.Record) {
	written, ok := lastWrite(rec)
	if !ok {
		delete(x.current, rec.Key)
		return
	}
	v := version{key: rec.Key, revision: rec.Modified, due: written.Add(Life)}
	x.current[rec.Key] = v
	heap.Push(&x.due, v)
}

// lastWrite returns when an event was last written; ok is false for what does
// not expire.
func lastWrite(rec *storage.Record) (last time.Time, ok bool) {
	var event metav1.PartialObjectMetadata
	if json.Unmarshal(rec.Value, &event) != nil || event.DeletionTimestamp != nil || event.CreationTimestamp.IsZero() {
		return last, false
	}
	last = event.CreationTimestamp.Time
	for _, entry := range event.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last, true
}

// Sync implements [step.Controller].
func (x *Expirer) Sync(_ storage.View, now time.Time) []step.Request {
	resource := step.Resource{Bucket: bucket, Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}
	var out []step.Request
	for {
		v, ok := x.next()
		if !ok || v.due.After(now) {
			return out
		}
		heap.Pop(&x.due)
		body := `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":` +
			strconv.Quote(strconv.FormatInt(int64(v.revision), 10)) + `}}`
		out = append(out, step.Delete(step.APIServer, resource.Object(v.key), []byte(body), step.Subject{Key: v.key}))
	}
}

// next returns the current version that expires first.
func (x *Expirer) next() (version, bool) {
	for len(x.due) > 0 {
		if v := x.due[0]; x.current[v.key].revision == v.revision {
			return v, true
		}
		heap.Pop(&x.due)
	}
	return version{}, false
}

// Wake implements [step.Waker].
func (x *Expirer) Wake() time.Time {
	v, _ := x.next()
	return v.due
}

// Done implements [step.Controller]. What was refused is asked for again,
// unless it has changed or gone in the meantime.
func (x *Expirer) Done(r step.Request, err error) {
	if v, known := x.current[r.Subject.Key]; known && err != nil {
		heap.Push(&x.due, v)
	}
}

// queue is a heap of versions by time, then key, so that the order is the same
// in every run.
type queue []version

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return cmp.Or(q[i].due.Compare(q[j].due), cmp.Compare(q[i].key.Name, q[j].key.Name)) < 0
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *queue) Push(v any) { *q = append(*q, v.(version)) }

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
