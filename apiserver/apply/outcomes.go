// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

const (
	// maxOutcomes bounds the outcomes that one manager remembers.
	maxOutcomes = 128
	// maxRemembered is the largest number of entries for which outcomes are remembered.
	// More may be merged into one, which depends on their times.
	maxRemembered = 9
)

// outcomes remembers how applies changed managedFields, for applies by the same
// manager, with the same managedFields before, and a change of the same [fields.Shape].
// The new managedFields follow from these and from times, whose source an outcome
// records. Objects of a kind are mostly applied in a few ways, again and again.
type outcomes struct {
	mu    sync.RWMutex
	known map[string][]*outcome // by apply, without managedFields
	count int
}

// outcome is managedFields after a write.
type outcome struct {
	before []entry
	after  []remembered
}

// remembered is one entry of an outcome.
type remembered struct {
	entry entry // without its time
	from  int   // the old entry whose time it keeps, or one of these
}

const (
	timeless = -1
	written  = -2 // the time of the write
)

// find returns the outcome of a write, or nil.
func (o *outcomes) find(did []byte, before []entry) *outcome {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, known := range o.known[string(did)] {
		if slices.EqualFunc(known.before, before, sameEntry) {
			return known
		}
	}
	return nil
}

func (o *outcomes) add(did []byte, known *outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count >= maxOutcomes {
		o.known, o.count = nil, 0 // outcomes in use are learned again
	}
	if o.known == nil {
		o.known = map[string][]*outcome{}
	}
	o.known[string(did)] = append(o.known[string(did)], known)
	o.count++
}

// sameEntry compares two entries except for their times.
func sameEntry(a, b entry) bool {
	return a.manager == b.manager && a.operation == b.operation && a.version == b.version && a.subresource == b.subresource && a.fields == b.fields
}

// record returns the managedFields after a write that happens now.
func (o *outcome) record(before []entry) []entry {
	out := make([]entry, len(o.after))
	for i, r := range o.after {
		out[i] = r.entry
		switch r.from {
		case timeless:
		case written:
			out[i].time = now()
		default:
			out[i].time = before[r.from].time
		}
	}
	slices.SortStableFunc(out, entry.compare)
	return out
}

// marks replaces the times of entries with unique ones, by which the entries are
// recognised after a write.
func marks(before []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	out := slices.Clone(before)
	for i := range out {
		if out[i].Time != nil {
			at := metav1.NewTime(markOf(i))
			out[i].Time = &at
		}
	}
	return out
}

func markOf(i int) time.Time { return time.Date(1980, time.January, 1+i, 0, 0, 0, 0, time.UTC) }

// attempt is a write whose outcome is remembered: its description, and the
// managedFields before it.
type attempt struct {
	did    []byte
	before []entry
}

// did begins the description of an apply.
func did(manager string, force bool) *fields.Shape {
	s := fields.NewShape()
	s.AddFlag(force)
	s.AddText(manager)
	return s
}

// learn remembers the managedFields that the library returned for marked entries; nil
// if that is not possible.
func (m *Manager) learn(a attempt, after []metav1.ManagedFieldsEntry) *outcome {
	known := &outcome{before: make([]entry, len(a.before)), after: make([]remembered, len(after))}
	for i := range a.before {
		known.before[i] = a.before[i].kept()
	}
	for i := range after {
		e := &after[i]
		from := timeless
		if e.Time != nil {
			from = written
			for j := range a.before {
				if e.Time.Equal(&metav1.Time{Time: markOf(j)}) {
					from = j
				}
			}
		}
		if e.FieldsV1 == nil || e.FieldsType != "FieldsV1" {
			return nil
		}
		set, ok := wire.Canonicalize(e.FieldsV1.GetRawBytes())
		if !ok {
			return nil
		}
		known.after[i] = remembered{entry{
			manager: e.Manager, version: e.APIVersion, subresource: e.Subresource, operation: e.Operation, fields: set, changed: true,
		}.kept(), from}
	}
	m.outcomes.add(a.did, known)
	return known
}

// kept returns a copy of an entry that does not keep its object in memory.
func (e entry) kept() entry {
	return entry{
		manager: strings.Clone(e.manager), version: strings.Clone(e.version), subresource: strings.Clone(e.subresource),
		operation: metav1.ManagedFieldsOperationType(strings.Clone(string(e.operation))), time: e.time,
		fields: wire.RawValue(strings.Clone(string(e.fields))), changed: e.changed,
	}
}

// readable reports whether all entries can be parsed.
func readable(entries []metav1.ManagedFieldsEntry) bool {
	return managedfields.ValidateManagedFields(entries) == nil
}
