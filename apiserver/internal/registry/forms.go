// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"sync"
	"weak"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// projection is what has been derived from one record: its metadata, and its
// encodings in forms other than the stored one. The record holds it, and it goes
// with the record: when neither the store nor a reader holds that any more.
type projection struct {
	once sync.Once // reads meta on first use
	meta wire.Meta

	mu    sync.Mutex
	forms *form // a list, the newest first
}

// form is one remembered encoding. The version tells one schema from its
// successor: every installation of a resource has versions of its own.
type form struct {
	version *resource.Version
	kind    formKind
	rope    wire.Rope

	of   *projection
	next *form
}

// formCost is about what remembering a form takes beside its bytes.
const formCost = 192

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

// forms bounds the memory of remembered encodings: the oldest go first. What it
// refers to is held by records alone, so that an encoding keeps neither a revision
// that the store has forgotten nor the value that both share.
type forms struct {
	limit int64

	mu    sync.Mutex
	queue []remembered // the oldest first
	used  int64        // the sum of its sizes
	sweep int          // the length of the queue at which it is swept
}

type remembered struct {
	form weak.Pointer[form]
	size int64
}

// minSweep is the length up to which the queue is not swept.
const minSweep = 64

func newForms(limit int64) *forms {
	switch {
	case limit == 0:
		limit = 64 << 20
	case limit < 0:
		limit = 0
	}
	return &forms{limit: limit, sweep: minSweep}
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
// also returns how many bytes are not those of the record.
func (f *forms) rope(rec *storage.Record, v *resource.Version, kind formKind, build func() (wire.Rope, int, error)) (wire.Rope, error) {
	if f.limit == 0 || rec.Modified == transientRevision {
		r, _, err := build()
		return r, err
	}
	p := project(rec)
	if known := p.find(v, kind); known != nil {
		return known.rope, nil
	}
	// Not under the lock: it may take a conversion over the network.
	r, own, err := build()
	if err != nil {
		return wire.Rope{}, err
	}
	f.add(p, v, kind, r, own)
	return r, nil
}

// keep remembers an encoding of a record before the first request for it.
func (f *forms) keep(rec *storage.Record, v *resource.Version, kind formKind, r wire.Rope, own int) {
	if f.limit > 0 {
		f.add(project(rec), v, kind, r, own)
	}
}

// add remembers an encoding unless another caller has been faster.
func (f *forms) add(p *projection, v *resource.Version, kind formKind, r wire.Rope, own int) {
	added := &form{version: v, kind: kind, rope: r, of: p}
	if p.add(added) {
		f.remember(remembered{weak.Make(added), int64(own) + formCost})
	}
}

func (f *forms) remember(r remembered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, r)
	f.used += r.size
	if len(f.queue) >= f.sweep {
		f.queue = slices.DeleteFunc(f.queue, func(r remembered) bool {
			gone := r.form.Value() == nil
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
		if form := oldest.form.Value(); form != nil {
			form.of.remove(form)
		}
	}
}

func (p *projection) find(v *resource.Version, kind formKind) *form {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.search(v, kind)
}

// search is find under the lock.
func (p *projection) search(v *resource.Version, kind formKind) *form {
	for f := p.forms; f != nil; f = f.next {
		if f.version == v && f.kind == kind {
			return f
		}
	}
	return nil
}

// add adds a form unless there is one of that version and kind, and reports whether
// it did.
func (p *projection) add(f *form) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.search(f.version, f.kind) != nil {
		return false
	}
	f.next, p.forms = p.forms, f
	return true
}

func (p *projection) remove(f *form) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := &p.forms; *at != nil; at = &(*at).next {
		if *at == f {
			*at = f.next
			return
		}
	}
}
