// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"errors"
	"time"
	"unicode/utf8"
)

// The encoded form of a record: its id, the start with its causes, then any number of
// accesses, then the end. Numbers are varints, strings carry their length. Bytes
// without pointers cost the garbage collector nothing, however many are kept.
const (
	tagAccess = 1
	tagEnd    = 2
)

// buffer is a record being written.
type buffer struct{ b []byte }

func (w *buffer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

func (w *buffer) string(s string) {
	if len(s) > maxText {
		s = s[:maxText]
		for !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) && len(s) > maxText-utf8.UTFMax {
			s = s[:len(s)-1]
		}
	}
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *buffer) object(o *Object) {
	w.string(o.Group)
	w.string(o.Kind)
	w.string(o.Namespace)
	w.string(o.Name)
}

func (w *buffer) start(id ID, s *Start) {
	w.b = binary.BigEndian.AppendUint64(w.b, id.Recorder)
	w.uint(id.Number)
	w.string(s.Controller)
	w.object(&s.Object)
	w.string(s.Request)
	w.uint(uint64(s.Began.UnixNano()))
	w.uint(uint64(s.Waited))
	w.uint(uint64(s.Retries))
	if s.Causes == nil || s.Causes.total == 0 {
		w.uint(0)
		return
	}
	w.uint(uint64(s.Causes.total))
	w.uint(uint64(1 + len(s.Causes.more)))
	w.cause(&s.Causes.first)
	for i := range s.Causes.more {
		w.cause(&s.Causes.more[(s.Causes.oldest+i)%len(s.Causes.more)])
	}
}

func (w *buffer) cause(c *Cause) {
	w.b = append(w.b, byte(c.Type))
	w.object(&c.Object)
	w.string(c.Revision)
	w.string(c.First)
	if c.secret() {
		w.string(firstFields(c.Changed))
	} else {
		w.string(c.Changed)
	}
	w.uint(uint64(c.Count))
}

// Flags of an access.
const (
	flagCached = 1 << iota
	flagAbsent
)

func (w *buffer) access(a *Access) {
	var flags byte
	if a.Cached {
		flags |= flagCached
	}
	if a.Absent {
		flags |= flagAbsent
	}
	w.b = append(w.b, tagAccess, byte(a.Verb), flags)
	w.object(&a.Object)
	w.string(a.Subresource)
	w.string(a.Revision)
	w.uint(uint64(a.Items))
	if a.secret() {
		w.string(firstFields(a.Changed))
	} else {
		w.string(a.Changed)
	}
	w.string(a.Error)
}

func (w *buffer) end(e *End, omitted int, text string) {
	w.b = append(w.b, tagEnd, byte(e.Outcome))
	w.uint(uint64(e.Took))
	w.uint(uint64(e.After))
	w.uint(uint64(omitted))
	w.string(text)
}

// EncodingVersion is that of encoded records, as [Cursor.Next] returns them: [Decode] of
// one version reads no other.
const EncodingVersion = 1

// errEncoded says that bytes are not an encoded record.
var errEncoded = errors.New("trace: decode: these are not the bytes of a record of this version")

// decoder reads what buffer wrote. What is missing or too long fails it, and everything
// after that is empty.
type decoder struct {
	b      []byte
	failed bool
}

func (r *decoder) fail() {
	r.b, r.failed = nil, true
}

func (r *decoder) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *decoder) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *decoder) string() string {
	n := r.uint()
	if n > maxText || n > uint64(len(r.b)) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *decoder) object() Object {
	return Object{Group: r.string(), Kind: r.string(), Namespace: r.string(), Name: r.string()}
}

// Decode reads an encoded record. It takes bytes of any origin: those that are not a
// record are an error, and memory is bounded by their number.
func Decode(encoded []byte) (Record, error) {
	d := decoder{b: encoded}
	var recorder uint64
	if len(encoded) >= 8 {
		recorder = binary.BigEndian.Uint64(encoded)
		d.b = encoded[8:]
	} else {
		d.fail()
	}
	rec := Record{
		ID:         ID{Recorder: recorder, Number: d.uint()},
		Controller: d.string(),
		Object:     d.object(),
		Request:    d.string(),
		Began:      time.Unix(0, int64(d.uint())),
		Waited:     time.Duration(d.uint()),
		Retries:    int(d.uint()),
		Adds:       int(d.uint()),
	}
	if rec.Adds != 0 {
		n := d.uint()
		if n > MaxCauses {
			d.fail()
			n = 0
		}
		rec.Causes = make([]Cause, n)
		for i := range rec.Causes {
			rec.Causes[i] = Cause{
				Type: CauseType(d.byte()), Object: d.object(), Revision: d.string(), First: d.string(), Changed: d.string(), Count: int(d.uint()),
			}
		}
	}
	tag := d.byte()
	for ; tag == tagAccess && !d.failed; tag = d.byte() {
		verb, flags := Verb(d.byte()), d.byte()
		a := Access{
			Verb: verb, Cached: flags&flagCached != 0, Absent: flags&flagAbsent != 0, Object: d.object(), Subresource: d.string(),
			Revision: d.string(), Items: int(d.uint()), Changed: d.string(), Error: d.string(),
		}
		if a.Verb.Reads() {
			rec.Reads = append(rec.Reads, a)
		} else {
			rec.Writes = append(rec.Writes, a)
		}
	}
	rec.Outcome = Outcome(d.byte())
	rec.Took = time.Duration(d.uint())
	rec.After = time.Duration(d.uint())
	rec.Omitted = int(d.uint())
	rec.Error = d.string()
	if d.failed || tag != tagEnd || len(d.b) > 0 {
		return Record{}, errEncoded
	}
	return rec, nil
}
