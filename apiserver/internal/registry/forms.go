// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync"
	"sync/atomic"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// projection is what has been derived from one record: its metadata, and its
// encodings in forms other than the stored one.
type projection struct {
	once sync.Once // reads meta when somebody asks for it
	meta wire.Meta

	mu    sync.Mutex
	forms []form
}

// form is one remembered encoding. The version tells one schema from its
// successor: every installation of a resource has versions of its own.
type form struct {
	version *resource.Version
	kind    formKind
	rope    wire.Rope
	own     int // of its bytes, without those of the record that it shares
}

type formKind uint8

const (
	formJSON formKind = iota
	formProto
	formMetadataProto
)

// project returns the projection of a record.
func project(rec *storage.Record) *projection {
	return rec.Derive(func(*storage.Record) any { return &projection{} }).(*projection)
}

// Meta returns the metadata that a record was selected by. Nobody changes it.
func Meta(rec *storage.Record) *wire.Meta {
	p := project(rec)
	p.once.Do(func() { p.meta = wire.ReadMeta(rec.Value) })
	return &p.meta
}

// forms bounds the memory of remembered encodings: the oldest go first.
type forms struct {
	limit int64
	used  atomic.Int64

	mu    sync.Mutex
	queue []remembered
	head  int
}

type remembered struct {
	projection *projection
	version    *resource.Version
	kind       formKind
}

func newForms(limit int64) *forms {
	switch {
	case limit == 0:
		limit = 64 << 20
	case limit < 0:
		limit = 0
	}
	return &forms{limit: limit}
}

// bytes is [forms.rope] for encodings of one piece.
func (f *forms) bytes(rec *storage.Record, v *resource.Version, kind formKind, build func() ([]byte, error)) ([]byte, error) {
	r, err := f.rope(rec, v, kind, func() (wire.Rope, int, error) {
		b, err := build()
		return wire.Rope{Head: b}, len(b), err
	})
	return r.Head, err
}

// rope returns an encoding of a record, made by build when it is not remembered. build
// also tells how many bytes are not those of the record.
func (f *forms) rope(rec *storage.Record, v *resource.Version, kind formKind, build func() (wire.Rope, int, error)) (wire.Rope, error) {
	if f.limit == 0 || rec.Modified == transientRevision {
		r, _, err := build()
		return r, err
	}
	p := project(rec)
	p.mu.Lock()
	for i := range p.forms {
		if p.forms[i].version == v && p.forms[i].kind == kind {
			r := p.forms[i].rope
			p.mu.Unlock()
			return r, nil
		}
	}
	p.mu.Unlock()
	// Not under the lock: it may take a conversion over the network.
	r, own, err := build()
	if err != nil {
		return wire.Rope{}, err
	}
	f.add(p, form{v, kind, r, own})
	return r, nil
}

// keep remembers an encoding of a record that nobody has asked for yet.
func (f *forms) keep(rec *storage.Record, of form) {
	if p := project(rec); f.limit > 0 && !p.has(of.version, of.kind) {
		f.add(p, of)
	}
}

func (f *forms) add(p *projection, of form) {
	p.mu.Lock()
	p.forms = append(p.forms, of)
	p.mu.Unlock()
	f.remember(remembered{p, of.version, of.kind}, of.own)
}

func (f *forms) remember(r remembered, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, r)
	for f.used.Add(int64(size)) > f.limit && f.head < len(f.queue) {
		size = -f.queue[f.head].forget()
		f.queue[f.head] = remembered{}
		f.head++
	}
	if f.head > len(f.queue)/2 {
		f.queue = append(f.queue[:0], f.queue[f.head:]...)
		f.head = 0
	}
}

// forget removes one encoding and returns its size.
func (r remembered) forget() int {
	r.projection.mu.Lock()
	defer r.projection.mu.Unlock()
	for i, f := range r.projection.forms {
		if f.version == r.version && f.kind == r.kind {
			r.projection.forms = append(r.projection.forms[:i:i], r.projection.forms[i+1:]...)
			return f.own
		}
	}
	return 0
}

func (p *projection) has(v *resource.Version, kind formKind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.forms {
		if f.version == v && f.kind == kind {
			return true
		}
	}
	return false
}
