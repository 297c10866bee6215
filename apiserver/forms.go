// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// projection is what has been derived from one record: its metadata, and its
// encodings in forms other than the stored one.
type projection struct {
	meta wire.Meta

	mu    sync.Mutex
	forms []form
}

// form is one remembered encoding. The version tells one schema from its
// successor: every installation of a resource has versions of its own.
type form struct {
	version *resource.Version
	kind    formKind
	bytes   []byte
}

type formKind uint8

const (
	formJSON formKind = iota
	formProto
	formMetadataProto
)

// project returns the projection of a record.
func project(rec *storage.Record) *projection {
	return rec.Derive(func(r *storage.Record) any {
		return &projection{meta: wire.ReadMeta(r.Value)}
	}).(*projection)
}

// forms bounds the memory of remembered encodings: the oldest go first.
type forms struct {
	limit int64
	bytes atomic.Int64

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

// get returns an encoding of a record, made by build when it is not remembered.
func (f *forms) get(rec *storage.Record, v *resource.Version, kind formKind, build func() ([]byte, error)) ([]byte, error) {
	if f.limit == 0 || rec.Modified == transientRevision {
		return build()
	}
	p := project(rec)
	p.mu.Lock()
	for i := range p.forms {
		if p.forms[i].version == v && p.forms[i].kind == kind {
			b := p.forms[i].bytes
			p.mu.Unlock()
			return b, nil
		}
	}
	p.mu.Unlock()
	// Not under the lock: it may take a conversion over the network.
	b, err := build()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.forms = append(p.forms, form{v, kind, b})
	p.mu.Unlock()
	f.remember(remembered{p, v, kind}, len(b))
	return b, nil
}

func (f *forms) remember(r remembered, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, r)
	for f.bytes.Add(int64(size)) > f.limit && f.head < len(f.queue) {
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
			return len(f.bytes)
		}
	}
	return 0
}

// asStored tells whether the bytes of a record are exactly what a reader of
// version v gets.
func (in *installed) asStored(rec *storage.Record, v *resource.Version) bool {
	if rec.Modified < in.Storage.Since && in.Backend == nil {
		return false
	}
	return wire.String(rec.Value, "apiVersion") == in.APIVersion(v)
}

// jsonOf returns a record as JSON in a version.
func (s *Server) jsonOf(ctx context.Context, in *installed, v *resource.Version, rec *storage.Record) ([]byte, error) {
	if in.asStored(rec, v) {
		return rec.Value, nil
	}
	return s.forms.get(rec, v, formJSON, func() ([]byte, error) {
		obj, err := s.object(ctx, in, v, rec)
		if err != nil {
			return nil, err
		}
		return encode(obj)
	})
}

// protoOf returns a record as protobuf of a typed version, without envelope.
func (s *Server) protoOf(ctx context.Context, in *installed, v *resource.Version, rec *storage.Record) ([]byte, error) {
	return s.forms.get(rec, v, formProto, func() ([]byte, error) {
		obj, err := s.object(ctx, in, v, rec)
		if err != nil {
			return nil, err
		}
		return marshalProto(obj)
	})
}

// metadataProtoOf returns the metadata of a record as protobuf of a
// PartialObjectMetadata, without envelope.
func (s *Server) metadataProtoOf(ctx context.Context, in *installed, v *resource.Version, rec *storage.Record) ([]byte, error) {
	return s.forms.get(rec, v, formMetadataProto, func() ([]byte, error) {
		value, err := s.jsonOf(ctx, in, v, rec)
		if err != nil {
			return nil, err
		}
		m, err := metadataOf(value)
		if err != nil {
			return nil, err
		}
		return (&metav1.PartialObjectMetadata{ObjectMeta: *m}).Marshal()
	})
}

func metadataOf(value []byte) (*metav1.ObjectMeta, error) {
	m := &metav1.ObjectMeta{}
	if raw := wire.Raw(value, "metadata"); raw != nil {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, m); err != nil {
			return nil, fmt.Errorf("read stored metadata: %w", err)
		}
	}
	return m, nil
}

// protoMarshaler is what typed objects of Kubernetes implement.
type protoMarshaler interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func marshalProto(obj resource.Object) ([]byte, error) {
	m, ok := obj.(protoMarshaler)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	// The envelope carries the type; the object itself does not.
	kind := obj.GetObjectKind().GroupVersionKind()
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	defer obj.GetObjectKind().SetGroupVersionKind(kind)
	return m.Marshal()
}

// object decodes a record into a version. The caller owns the result.
func (s *Server) object(ctx context.Context, in *installed, v *resource.Version, rec *storage.Record) (resource.Object, error) {
	if in.asStored(rec, v) {
		return decode(v, rec.Value)
	}
	all, err := s.objects(ctx, in, v, []*storage.Record{rec})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// objects decodes records into a version, converting all that were stored in
// the same other version in one call.
func (s *Server) objects(ctx context.Context, in *installed, v *resource.Version, recs []*storage.Record) ([]resource.Object, error) {
	out := make([]resource.Object, len(recs))
	foreign := map[*resource.Version][]int{}
	for i, rec := range recs {
		obj, stored, err := in.decodeStored(rec)
		if err != nil {
			return nil, err
		}
		old := rec.Modified < in.Storage.Since
		if old {
			if _, err := stored.Strategy.Normalize(obj); err != nil {
				return nil, apierrors.NewInternalError(fmt.Errorf("read %s: %w", rec.Key, err))
			}
		}
		out[i] = obj
		if stored != v {
			foreign[stored] = append(foreign[stored], i)
		}
	}
	for i := range in.Versions { // in a fixed order
		positions := foreign[&in.Versions[i]]
		if len(positions) == 0 {
			continue
		}
		batch := make([]resource.Object, len(positions))
		for j, p := range positions {
			batch[j] = out[p]
		}
		converted, err := in.convert(ctx, batch, v)
		if err != nil {
			return nil, err
		}
		for j, p := range positions {
			if v.Prune != nil {
				v.Prune(converted[j])
			}
			out[p] = converted[j]
		}
	}
	return out, nil
}

// convert brings objects of one version into another.
func (in *installed) convert(ctx context.Context, objects []resource.Object, to *resource.Version) ([]resource.Object, error) {
	if in.Convert == nil {
		out := make([]resource.Object, len(objects))
		for i, obj := range objects {
			obj = obj.DeepCopyObject().(resource.Object)
			obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind(to.Name))
			out[i] = obj
		}
		return out, nil
	}
	out, err := in.Convert(ctx, objects, to.Name)
	if err != nil {
		return nil, err
	}
	if len(out) != len(objects) {
		return nil, apierrors.NewInternalError(fmt.Errorf("convert %s to %s: got %d objects for %d", in.Kind, to.Name, len(out), len(objects)))
	}
	return out, nil
}

// encode returns an object as JSON.
func encode(obj resource.Object) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return wire.Marshal(u.Object)
	}
	return json.Marshal(obj)
}
