// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"

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
	before []any
	after  []remembered
}

// remembered is one entry of a record. Its fields are shared by all objects that
// have it, and never changed.
type remembered struct {
	entry map[string]any // without its time
	from  int            // the entry of the old record whose time it keeps, or one of these
}

const (
	timeless = -1
	written  = -2 // the time of the write
)

// find returns the outcome of a write.
func (o *outcomes) find(did []byte, before []any) *outcome {
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
func sameEntry(a, b any) bool {
	x, isEntry := a.(map[string]any)
	y, alsoEntry := b.(map[string]any)
	if !isEntry || !alsoEntry {
		return false
	}
	for _, name := range []string{"manager", "operation", "apiVersion", "fieldsType", "subresource", "fieldsV1"} {
		if !wire.Equal(x[name], y[name]) {
			return false
		}
	}
	return true
}

// record makes the record after a write that happens now.
func (o *outcome) record(before []any, now time.Time) []any {
	out := make([]any, len(o.after))
	for i, r := range o.after {
		entry := make(map[string]any, len(r.entry)+1)
		for name, value := range r.entry {
			entry[name] = value
		}
		switch r.from {
		case timeless:
		case written:
			entry["time"] = now.UTC().Format(time.RFC3339)
		default:
			entry["time"] = timeOf(before[r.from])
		}
		out[i] = entry
	}
	slices.SortStableFunc(out, inOrder)
	return out
}

// inOrder is the order of a record.
func inOrder(a, b any) int {
	x, y := a.(map[string]any), b.(map[string]any)
	text := func(name string) int {
		p, _ := x[name].(string)
		q, _ := y[name].(string)
		return cmp.Compare(p, q)
	}
	return cmp.Or(text("operation"), text("time"), text("manager"), text("apiVersion"), text("subresource"))
}

func timeOf(entry any) string {
	text, _ := entry.(map[string]any)["time"].(string)
	return text
}

// plainRecord tells whether outcomes are remembered for a record: short, of
// entries in the version of the endpoint, without repetitions, and with times as
// they are written here.
func (b *binding) plainRecord(before []any) bool {
	if len(before) > maxRemembered {
		return false
	}
	version := b.Kind.GroupVersion().String()
	for i, element := range before {
		entry, ok := element.(map[string]any)
		if !ok || entry["apiVersion"] != version || entry["fieldsType"] != "FieldsV1" {
			return false
		}
		switch set := entry["fieldsV1"].(type) {
		case map[string]any:
			if set == nil {
				return false
			}
		default:
			return false
		}
		for name, value := range entry {
			switch name {
			case "manager", "operation", "apiVersion", "fieldsType", "subresource":
				if _, ok := value.(string); !ok {
					return false
				}
			case "time":
				if text, ok := value.(string); !ok || len(text) != len("2006-01-02T15:04:05Z") || !strings.HasSuffix(text, "Z") {
					return false
				}
			case "fieldsV1":
			default:
				return false
			}
		}
		for _, other := range before[:i] {
			other := other.(map[string]any)
			if entry["manager"] == other["manager"] && entry["operation"] == other["operation"] && entry["subresource"] == other["subresource"] {
				return false
			}
		}
	}
	return true
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
	before []any
}

// did begins the description of an apply.
func did(manager string, force bool) *fields.Shape {
	s := fields.NewShape()
	s.AddFlag(force)
	s.AddText(manager)
	return s
}

// learn remembers the record that an attempt has made of a marked one.
func (m *Manager) learn(a attempt, after []metav1.ManagedFieldsEntry) (*outcome, error) {
	known, err := learn(a.before, after)
	if err == nil {
		m.outcomes.add(a.did, known)
	}
	return known, err
}

// learn makes an outcome of the record that a write has made of a marked one.
func learn(before []any, after []metav1.ManagedFieldsEntry) (*outcome, error) {
	// A copy, which does not keep the object alive that the record comes from.
	kept, err := cloned(before)
	if err != nil {
		return nil, err
	}
	out := &outcome{before: kept, after: make([]remembered, len(after))}
	for i := range after {
		entry := after[i]
		from := timeless
		if entry.Time != nil {
			from = written
			for j := range before {
				if entry.Time.Equal(&metav1.Time{Time: markOf(j)}) {
					from = j
				}
			}
		}
		entry.Time = nil
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
		if err != nil {
			return nil, err
		}
		out.after[i] = remembered{content, from}
	}
	return out, nil
}

// cloned copies a record, texts included.
func cloned(record []any) (out []any, err error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return out, kjson.UnmarshalCaseSensitivePreserveInts(raw, &out)
}

// readable tells whether the entries of a record can be read.
func readable(entries []metav1.ManagedFieldsEntry) bool {
	return managedfields.ValidateManagedFields(entries) == nil
}

// setRawRecord gives an unstructured object a record as it is.
func setRawRecord(u *unstructured.Unstructured, entries []any) {
	if len(entries) > 0 {
		putRecord(u, entries)
	} else if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
}

// putRecord gives an unstructured object a record, in either form.
func putRecord(u *unstructured.Unstructured, record any) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		u.Object["metadata"] = metadata
	}
	metadata["managedFields"] = record
}
