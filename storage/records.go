// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"iter"
	"sort"
	"strings"
	"sync"

	"github.com/tidwall/btree"
)

// records is the state of a store: a copy-on-write tree of buckets, each a
// copy-on-write tree of records by name. Copying it takes constant time and shares
// everything; a later change of either copy clones only the path to the changed record.
//
// A records value has one writer; copies that are no longer written may be read
// concurrently.
type records struct {
	buckets btree.Map[string, *bucket]
	size    int // number of records
	// epoch marks the buckets that this value owns. copy replaces it, which gives up
	// the ownership of all of them at once.
	epoch *epoch
}

// epoch is compared by address, so it must not have size zero.
type epoch struct{ _ byte }

type bucket struct {
	name  string
	epoch *epoch
	// copying serialises the first changes of this bucket by several copies: taking a
	// copy of the tree writes to it.
	copying sync.Mutex
	byName  btree.Map[string, *Record]
}

// copy returns a copy that shares everything with r. It counts as a write.
func (r *records) copy() *records {
	r.epoch = new(epoch)
	return &records{buckets: *r.buckets.Copy(), size: r.size, epoch: new(epoch)}
}

func (r *records) get(k Key) *Record {
	b, ok := r.buckets.Get(k.Bucket)
	if !ok {
		return nil
	}
	rec, _ := b.byName.Get(k.Name)
	return rec
}

// put sets the version of a key.
func (r *records) put(rec *Record) {
	if _, replaced := r.writable(rec.Key.Bucket).byName.Set(rec.Key.Name, rec); !replaced {
		r.size++
	}
}

// remove removes an existing key.
func (r *records) remove(k Key) {
	b := r.writable(k.Bucket)
	b.byName.Delete(k.Name)
	r.size--
	if b.byName.Len() == 0 {
		r.buckets.Delete(k.Bucket)
	}
}

// undo reverts the last event of its key.
func (r *records) undo(e Event) {
	if e.Previous == nil {
		r.remove(e.Record.Key)
		return
	}
	r.put(e.Previous)
}

// writable returns the bucket of that name, owned by r alone.
func (r *records) writable(name string) *bucket {
	b, ok := r.buckets.Get(name)
	switch {
	case !ok:
		b = &bucket{name: name, epoch: r.epoch}
	case b.epoch == r.epoch:
		return b
	default:
		b.copying.Lock()
		byName := b.byName.Copy()
		b.copying.Unlock()
		b = &bucket{name: b.name, epoch: r.epoch, byName: *byName}
	}
	r.buckets.Set(b.name, b)
	return b
}

// ascend yields the records of a bucket with the prefix, not below start.
func (r *records) ascend(name, prefix, start string) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		b, ok := r.buckets.Get(name)
		if !ok {
			return
		}
		b.byName.Ascend(max(prefix, start), func(name string, rec *Record) bool {
			return strings.HasPrefix(name, prefix) && yield(rec)
		})
	}
}

// count returns how many records ascend would yield.
func (r *records) count(name, prefix, start string) int {
	b, ok := r.buckets.Get(name)
	if !ok {
		return 0
	}
	from, to := 0, b.byName.Len()
	if start = max(prefix, start); start != "" {
		from = b.rank(start)
	}
	if end := after(prefix); end != "" {
		to = b.rank(end)
	}
	return max(0, to-from)
}

// rank returns how many names are below name.
func (b *bucket) rank(name string) int {
	return sort.Search(b.byName.Len(), func(i int) bool {
		at, _, _ := b.byName.GetAt(i)
		return at >= name
	})
}

// after returns the lowest string above all strings with prefix, or "" if there is
// none.
func after(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// view is a View on records that are no longer written.
type view struct {
	revision Revision
	records  *records
	// copying serialises copies of records.
	copying sync.Mutex
}

// NewView returns a snapshot that has the given records, of which each is at or below the
// revision: what [Save] writes, or a store begins with ([MemoryOptions].From).
func NewView(revision Revision, all iter.Seq[*Record]) View {
	v := &view{revision: revision, records: &records{epoch: new(epoch)}}
	for rec := range all {
		v.records.put(rec)
	}
	return v
}

// Revision implements [View].
func (v *view) Revision() Revision { return v.revision }

// Get implements [View].
func (v *view) Get(key Key) *Record { return v.records.get(key) }

// Ascend implements [View].
func (v *view) Ascend(bucket, prefix, start string) iter.Seq[*Record] {
	return v.records.ascend(bucket, prefix, start)
}

// Count implements [View].
func (v *view) Count(bucket, prefix, start string) int {
	return v.records.count(bucket, prefix, start)
}

// Buckets implements [View].
func (v *view) Buckets() iter.Seq[string] {
	return func(yield func(string) bool) {
		v.records.buckets.Scan(func(name string, _ *bucket) bool { return yield(name) })
	}
}

// writableRecords returns a writable copy of the state of any view.
func writableRecords(from View) *records {
	if v, ok := from.(*view); ok {
		v.copying.Lock()
		defer v.copying.Unlock()
		return v.records.copy()
	}
	r := &records{epoch: new(epoch)}
	for name := range from.Buckets() {
		for rec := range from.Ascend(name, "", "") {
			r.put(rec)
		}
	}
	return r
}
