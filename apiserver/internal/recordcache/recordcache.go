// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordcache keeps what is computed from a stored record: its metadata ([Meta]) and
// its encodings in served versions and media types ([Cache]). Readers of one record share
// both; they are freed with the record.
package recordcache

import (
	"slices"
	"sync"
	"weak"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// derived is what is computed from one record: its metadata, and its encodings other
// than the stored one. The record holds it, so it is freed with the record, once
// neither the store nor a reader holds that.
type derived struct {
	once sync.Once // reads meta on first use
	meta jsontext.Meta

	mu        sync.Mutex
	encodings *encoding // a list, the newest first
}

// encoding is one cached encoding. The version also identifies the schema: every
// installation of a resource has versions of its own.
type encoding struct {
	version *resource.Version
	kind    Kind
	pieces  wire.Pieces

	of   *derived
	next *encoding
}

// cost is the approximate memory of a cache entry besides its bytes.
const cost = 192

// Kind is the media type of an encoding, and what of the object is in it.
type Kind uint8

// The kinds. Proto is enveloped, MetadataProto is the content of a PartialObjectMetadata.
const (
	JSON Kind = iota
	Proto
	MetadataProto
)

// Transient is the revision of records that are not in the store. Nothing is cached for
// them.
const Transient storage.Revision = 1<<63 - 1

// derive returns the derived of a record.
func derive(rec *storage.Record) *derived {
	return rec.Derive(func(*storage.Record) any { return &derived{} }).(*derived)
}

// Meta returns the metadata of a record. It is shared and must not be changed.
func Meta(rec *storage.Record) *jsontext.Meta {
	p := derive(rec)
	p.once.Do(func() { p.meta = jsontext.ReadMeta(rec.Value) })
	return &p.meta
}

// Cache bounds the memory of cached encodings: the oldest are evicted first. It
// refers to them weakly, so that an encoding keeps neither a revision that the store
// has dropped nor the value that both share.
type Cache struct {
	limit int64

	mu    sync.Mutex
	queue []remembered // the oldest first
	used  int64        // the sum of its sizes
	sweep int          // the length of the queue at which it is swept
}

type remembered struct {
	encoding weak.Pointer[encoding]
	size     int64
}

// minSweep is the length up to which the queue is not swept.
const minSweep = 64

// New returns a cache of a number of bytes: 0 means 64 MiB, and a negative limit caches
// nothing.
func New(limit int64) *Cache {
	switch {
	case limit == 0:
		limit = 64 << 20
	case limit < 0:
		limit = 0
	}
	return &Cache{limit: limit, sweep: minSweep}
}

// Bytes is [Cache.Pieces] for encodings of one piece.
func (f *Cache) Bytes(rec *storage.Record, v *resource.Version, kind Kind, build func() ([]byte, error)) ([]byte, error) {
	r, err := f.Pieces(rec, v, kind, func() (wire.Pieces, int, error) {
		b, err := build()
		return wire.Pieces{Head: b}, len(b), err
	})
	return r.Head, err
}

// Pieces returns an encoding of a record, made by build if it is not cached. build also
// returns how many bytes are not shared with the record.
func (f *Cache) Pieces(rec *storage.Record, v *resource.Version, kind Kind, build func() (wire.Pieces, int, error)) (wire.Pieces, error) {
	if f.limit == 0 || rec.Modified == Transient {
		r, _, err := build()
		return r, err
	}
	if known, ok := Cached(rec, v, kind); ok {
		return known, nil
	}
	// Without the lock, because build may call a conversion webhook.
	r, own, err := build()
	if err != nil {
		return wire.Pieces{}, err
	}
	f.add(derive(rec), v, kind, r, own)
	return r, nil
}

// Keep caches an encoding of a record before the first request for it.
func (f *Cache) Keep(rec *storage.Record, v *resource.Version, kind Kind, r wire.Pieces, own int) {
	if f.limit > 0 {
		f.add(derive(rec), v, kind, r, own)
	}
}

// add caches an encoding unless a concurrent caller has done so.
func (f *Cache) add(p *derived, v *resource.Version, kind Kind, r wire.Pieces, own int) {
	added := &encoding{version: v, kind: kind, pieces: r, of: p}
	if p.add(added) {
		f.remember(remembered{weak.Make(added), int64(own) + cost})
	}
}

// Cached returns an encoding of a record if it is cached.
func Cached(rec *storage.Record, v *resource.Version, kind Kind) (pieces wire.Pieces, ok bool) {
	if known := derive(rec).find(v, kind); known != nil {
		return known.pieces, true
	}
	return wire.Pieces{}, false
}

func (f *Cache) remember(r remembered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, r)
	f.used += r.size
	if len(f.queue) >= f.sweep {
		f.queue = slices.DeleteFunc(f.queue, func(r remembered) bool {
			gone := r.encoding.Value() == nil
			if gone {
				f.used -= r.size
			}
			return gone
		})
		f.sweep = max(minSweep, 2*len(f.queue))
	}
	for f.used > f.limit && len(f.queue) > 0 {
		oldest := f.queue[0]
		f.queue = f.queue[1:]
		f.used -= oldest.size
		if e := oldest.encoding.Value(); e != nil {
			e.of.remove(e)
		}
	}
}

func (p *derived) find(v *resource.Version, kind Kind) *encoding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.search(v, kind)
}

// search is find without the lock, which the caller holds.
func (p *derived) search(v *resource.Version, kind Kind) *encoding {
	for f := p.encodings; f != nil; f = f.next {
		if f.version == v && f.kind == kind {
			return f
		}
	}
	return nil
}

// add adds an encoding unless there is one of that version and kind, and reports
// whether it did.
func (p *derived) add(f *encoding) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.search(f.version, f.kind) != nil {
		return false
	}
	f.next, p.encodings = p.encodings, f
	return true
}

func (p *derived) remove(f *encoding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := &p.encodings; *at != nil; at = &(*at).next {
		if *at == f {
			*at = f.next
			return
		}
	}
}
