// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"iter"
	"slices"
	"sort"

	"github.com/steer-dev/steer/trace"
)

// The index of a segment: the magic, the version, the size of the segment in eight
// bytes, then for every record and each of its objects the hash of the object and the
// offset of the frame, four bytes each, in this order; then a checksum of it all.
const (
	indexMagic  = "steeridx"
	indexHeader = len(indexMagic) + 1 + 8
	entrySize   = 8
)

// entry says that a frame has something about an object.
type entry struct{ hash, offset uint32 }

// index is that of a segment that is being written.
type index struct{ entries []entry }

// add notes the objects of a record.
func (x *index) add(record *trace.Record, offset int64) {
	from := len(x.entries)
	for object := range objects(record) {
		e := entry{hashOf(object), uint32(offset)}
		if !slices.Contains(x.entries[from:], e) {
			x.entries = append(x.entries, e)
		}
	}
}

// objects yields those that a record is found by: what was reconciled, what caused it,
// and what it wrote.
func objects(record *trace.Record) iter.Seq[trace.Object] {
	return func(yield func(trace.Object) bool) {
		if record.Object != (trace.Object{}) && !yield(record.Object) {
			return
		}
		for i := range record.Causes {
			if o := record.Causes[i].Object; o != (trace.Object{}) && !yield(o) {
				return
			}
		}
		for i := range record.Writes {
			if !yield(record.Writes[i].Object) {
				return
			}
		}
	}
}

// About reports whether a record is about an object: it reconciled the object, was caused by
// it, or wrote it.
func About(record *trace.Record, object trace.Object) bool {
	for o := range objects(record) {
		if o == object {
			return true
		}
	}
	return false
}

// hashOf is FNV-1a of the parts of a name, each ended by a zero.
func hashOf(o trace.Object) uint32 {
	h := fnv.New32a()
	for _, part := range [...]string{o.Group, o.Kind, o.Namespace, o.Name} {
		_, _ = h.Write(append([]byte(part), 0)) // it never fails
	}
	return h.Sum32()
}

// encode returns the file for a segment of a size.
func (x *index) encode(size int64) []byte {
	slices.SortFunc(x.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.offset, b.offset))
	})
	b := make([]byte, 0, indexHeader+len(x.entries)*entrySize+4)
	b = append(append(b, indexMagic...), version)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	for _, e := range x.entries {
		b = binary.LittleEndian.AppendUint32(b, e.hash)
		b = binary.LittleEndian.AppendUint32(b, e.offset)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// lookUp returns the offsets of the frames about an object in the file of an index. It
// reports false if that is not the index of a segment of this size.
func lookUp(file []byte, size int64, object trace.Object) ([]int64, bool) {
	if len(file) < indexHeader+4 || (len(file)-indexHeader-4)%entrySize != 0 {
		return nil, false
	}
	b, sum := file[:len(file)-4], binary.LittleEndian.Uint32(file[len(file)-4:])
	if string(b[:len(indexMagic)]) != indexMagic || b[len(indexMagic)] != version ||
		binary.LittleEndian.Uint64(b[len(indexMagic)+1:]) != uint64(size) || crc32.Checksum(b, castagnoli) != sum {
		return nil, false
	}
	b = b[indexHeader:]
	want := hashOf(object)
	at := func(i int) entry {
		return entry{binary.LittleEndian.Uint32(b[i*entrySize:]), binary.LittleEndian.Uint32(b[i*entrySize+4:])}
	}
	n := len(b) / entrySize
	var offsets []int64
	for i := sort.Search(n, func(i int) bool { return at(i).hash >= want }); i < n && at(i).hash == want; i++ {
		offsets = append(offsets, int64(at(i).offset))
	}
	return offsets, true
}
