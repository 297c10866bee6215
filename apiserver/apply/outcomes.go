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
	// maxOutcomes bounds what one manager remembers.
	maxOutcomes = 128
	// maxRemembered is the longest record that outcomes are remembered for. Longer
	// ones may be folded, which depends on their times.
	maxRemembered = 9
)

// outcomes remembers what applies have done to records, for applies that are
// alike: by the same manager, with the same record before, and a change of the
// same [fields.Shape]. What one does to the record follows from these alone, and times,
// of which an outcome says where they come from. Objects of a kind are mostly
// applied in a few ways, again and again.
type outcomes struct {
	mu    sync.RWMutex
	known map[string][]*outcome // by what was done, but the record
	count int
}

// outcome is the record after a write.
type outcome struct {
	before []entry
	after  []remembered
}

// remembered is one entry of a record.
type remembered struct {
	entry entry // without its time
	from  int   // the entry of the old record whose time it keeps, or one of these
}

const (
	timeless = -1
	written  = -2 // the time of the write
)

// find returns the outcome of a write.
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
		o.known, o.count = nil, 0 // what is in use comes back
	}
	if o.known == nil {
		o.known = map[string][]*outcome{}
	}
	o.known[string(did)] = append(o.known[string(did)], known)
	o.count++
}

// sameEntry compares two entries of a record but for their times.
func sameEntry(a, b entry) bool {
	return a.manager == b.manager && a.operation == b.operation && a.version == b.version && a.subresource == b.subresource && a.fields == b.fields
}

// record makes the record after a write that happens now.
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

// marks are times of their own for the entries of a record, by which the entries
// are known again after a write.
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

// attempt is a write whose outcome is remembered: what it does, and the record
// that it finds.
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

// learn remembers the record that an attempt has made of a marked one; nil if it cannot.
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
		set, ok := wire.FreezeText(e.FieldsV1.GetRawBytes())
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

// kept is an entry that does not keep the object alive that it comes from.
func (e entry) kept() entry {
	return entry{
		manager: strings.Clone(e.manager), version: strings.Clone(e.version), subresource: strings.Clone(e.subresource),
		operation: metav1.ManagedFieldsOperationType(strings.Clone(string(e.operation))), time: e.time,
		fields: wire.Frozen(strings.Clone(string(e.fields))), changed: e.changed,
	}
}

// readable reports whether the entries of a record can be read.
func readable(entries []metav1.ManagedFieldsEntry) bool {
	return managedfields.ValidateManagedFields(entries) == nil
}
