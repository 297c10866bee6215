// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// encodedObject is an object encoded for the store.
type encodedObject struct {
	value []byte
	stamp int
	// lossless is the object in the storage version if its protobuf equals the protobuf of
	// the decoded JSON; see [typed.Encode].
	lossless resource.Object
}

// encodeForStore encodes an object for the store: in the storage version, without the
// revision, which the store inserts. It may change the object.
func (g *Registry) encodeForStore(ctx context.Context, in *Served, v *resource.Version, obj resource.Object) (s encodedObject, err error) {
	obj.SetSelfLink("")
	if v.Canonicalize != nil {
		v.Canonicalize(obj)
	}
	if v.Name != in.Storage.Version {
		obj.SetResourceVersion("") // the store gives it one once it is converted
		if obj, err = in.toStorage(ctx, obj); err != nil {
			return s, err
		}
	}
	if a := in.Storage.Alias; a != nil {
		obj = a.Save(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(in.StoredKind())
	obj.SetResourceVersion(jsontext.Placeholder)
	encoded, lossless, err := encode(obj)
	if err != nil {
		return s, apierrors.NewInternalError(fmt.Errorf("encode %s %q: %w", in.Kind, obj.GetName(), err))
	}
	if lossless && in.Storage.Alias == nil {
		s.lossless = obj
	}
	s.value, s.stamp, err = jsontext.Open(encoded)
	return s, err
}

// WriteOf returns the write that stores an object of a version as it is.
func (g *Registry) WriteOf(ctx context.Context, in *Served, v *resource.Version, obj resource.Object) (storage.Write, error) {
	encoded, err := g.encodeForStore(ctx, in, v, obj)
	return storage.Write{Key: in.Key(obj.GetNamespace(), obj.GetName()), Value: encoded.value, Stamp: encoded.stamp, Expect: storage.AnyRevision}, err
}

// TransientRecord makes a record of an object that is not stored, such as the answer of a
// dry run.
func (g *Registry) TransientRecord(in *Served, v *resource.Version, obj resource.Object) (*storage.Record, error) {
	if v.Canonicalize != nil {
		v.Canonicalize(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind(v.Name))
	value, err := resource.EncodeObject(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &storage.Record{Value: value, Modified: recordcache.Transient}, nil
}

// WithRevision returns a record with the object of rec in a version, and with another
// resourceVersion: a watch sends it for an object that has left its selection. It is not in
// the store, and nothing is cached for it.
func (g *Registry) WithRevision(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record, revision storage.Revision) (*storage.Record, error) {
	out := &storage.Record{Key: rec.Key, Created: rec.Created, Modified: recordcache.Transient}
	if rec.Stamp > 0 && in.IsStoredVersion(rec, v) {
		out.Value, out.Stamp = jsontext.Restamp(rec.Value, rec.Stamp, int64(revision)), rec.Stamp
		return out, nil
	}
	obj, err := g.Object(ctx, in, v, rec)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(strconv.FormatInt(int64(revision), 10))
	out.Value, err = resource.EncodeObject(obj)
	return out, err
}

// dryRunRecord is the answer of a dry run: the object as it would be read after it was
// stored, in the version in which it would have been stored.
func (op *Operation) dryRunRecord(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	in, v := op.Served, op.Version
	if v.Name != in.Storage.Version && v.Prune != nil {
		stored, err := in.toStorage(ctx, obj)
		if err != nil {
			return nil, err
		}
		read, err := in.ConvertAll(ctx, []resource.Object{stored}, v.Name)
		if err != nil {
			return nil, err
		}
		obj = read[0]
		v.Prune(obj)
	}
	return op.g.TransientRecord(in, v, obj)
}

// toStorage converts an object to the storage version.
func (in *Served) toStorage(ctx context.Context, obj resource.Object) (resource.Object, error) {
	to := in.Version(in.Storage.Version)
	converted, err := in.ConvertAll(ctx, []resource.Object{obj}, to.Name)
	if err != nil {
		return nil, err
	}
	if _, err := to.Strategy.Default(converted[0]); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("convert %s %q to the storage version: %w", in.Kind, obj.GetName(), err))
	}
	return converted[0], nil
}

// protoMarshaler is implemented by the generated protobuf types of Kubernetes.
type protoMarshaler interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// MarshalProto returns an object as protobuf, without an envelope.
func MarshalProto(obj resource.Object) ([]byte, error) {
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

// encode is [resource.EncodeObject]; lossless is the result of [typed.Encode].
func encode(obj resource.Object) (value []byte, lossless bool, err error) {
	if d, ok := obj.(*resource.Doc); ok {
		value, err = d.MarshalJSON()
		return value, false, err
	}
	return typed.Encode(obj)
}
