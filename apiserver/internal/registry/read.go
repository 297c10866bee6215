// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// IsStoredVersion reports whether a record is stored in version v, so that a reader of v gets
// its bytes unchanged.
func (in *Served) IsStoredVersion(rec *storage.Record, v *resource.Version) bool {
	if rec.Modified < in.Storage.Since && in.Backend == nil {
		return false
	}
	return beginsWith(rec.Value, in.Group, v.Name) || jsontext.String(rec.Value, "apiVersion") == in.APIVersion(v)
}

// beginsWith reports whether an encoded object begins with this apiVersion. Custom
// resources are encoded in this order. It is called for every record that is read, so
// it does not scan further.
func beginsWith(value []byte, group, version string) bool {
	const begin = `{"apiVersion":"`
	if len(value) < len(begin)+len(group)+len(version)+2 || string(value[:len(begin)]) != begin {
		return false
	}
	rest := value[len(begin):]
	if group != "" {
		if string(rest[:len(group)]) != group || rest[len(group)] != '/' {
			return false
		}
		rest = rest[len(group)+1:]
	}
	return string(rest[:len(version)]) == version && rest[len(version)] == '"'
}

// JSON returns a record as JSON in a version.
func (g *Registry) JSON(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record) ([]byte, error) {
	if in.IsStoredVersion(rec, v) {
		return rec.Value, nil
	}
	return g.encodings.Bytes(rec, v, recordcache.JSON, func() ([]byte, error) {
		obj, err := g.Object(ctx, in, v, rec)
		if err != nil {
			return nil, err
		}
		return resource.EncodeObject(obj)
	})
}

// ObjectJSON is [Registry.JSON] for a caller that has the object of the record in the version,
// as [Registry.Objects] returns it.
func (g *Registry) ObjectJSON(in *Served, v *resource.Version, rec *storage.Record, obj resource.Object) ([]byte, error) {
	if in.IsStoredVersion(rec, v) {
		return rec.Value, nil
	}
	return g.encodings.Bytes(rec, v, recordcache.JSON, func() ([]byte, error) { return resource.EncodeObject(obj) })
}

// Proto returns a record as enveloped protobuf of a version that has this form.
func (g *Registry) Proto(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record) (wire.Pieces, error) {
	return g.encodings.Pieces(rec, v, recordcache.Proto, func() (enveloped wire.Pieces, own int, err error) {
		obj, err := g.message(ctx, in, v, rec)
		if err != nil {
			return wire.Pieces{}, 0, err
		}
		return in.proto(v, rec, obj)
	})
}

// message returns the object of a record in a version, of the Go type that has the protobuf form.
func (g *Registry) message(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record) (resource.Object, error) {
	if v.NewMessage == nil {
		return g.Object(ctx, in, v, rec)
	}
	value, err := g.JSON(ctx, in, v, rec)
	if err != nil {
		return nil, err
	}
	obj := v.NewMessage()
	if err := typed.Decode(value, obj); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("the protobuf of %s: the Go type %T does not accept what the schema accepts: %w", rec.Key, obj, err))
	}
	return obj, nil
}

// proto returns the object of a record as enveloped protobuf, which shares the memory of the
// record where both have long managedFields.
func (in *Served) proto(v *resource.Version, rec *storage.Record, obj resource.Object) (enveloped wire.Pieces, own int, err error) {
	raw, err := MarshalProto(obj)
	if err != nil {
		return wire.Pieces{}, 0, err
	}
	var shared [][]byte
	for _, entry := range obj.GetManagedFields() {
		const long = 256 // the size from which sharing memory pays
		if fields := entry.FieldsV1; fields != nil && len(fields.GetRawBytes()) >= long {
			if i := wire.Index(rec.Value, fields.GetRawBytes()); i >= 0 {
				shared = append(shared, rec.Value[i:i+len(fields.GetRawBytes()):i+len(fields.GetRawBytes())])
			}
		}
	}
	enveloped, own = wire.EnvelopeSharing(in.APIVersion(v), in.Kind, raw, shared)
	return enveloped, own, nil
}

// WatchedAsProto registers a watch that reads every object of a version as
// protobuf, until done is called. Writes then cache the protobuf of their objects.
func (in *Served) WatchedAsProto(v *resource.Version) (done func()) {
	watched := in.watched[v]
	watched.Add(1)
	return func() { watched.Add(-1) }
}

// marshal caches the protobuf of a record that was just written, from the object that
// it was encoded from, which spares decoding the record. It does nothing unless the writer
// (asked) or a watch will read the protobuf. It may change the object.
//
//steer:fast typed
func (g *Registry) marshal(in *Served, rec *storage.Record, obj resource.Object, asked bool) {
	v := in.Version(in.Storage.Version)
	if _, has := obj.(protoMarshaler); !has || !asked && in.watched[v].Load() == 0 {
		return
	}
	obj.SetResourceVersion(strconv.FormatInt(int64(rec.Modified), 10))
	enveloped, own, err := in.proto(v, rec, obj)
	if err != nil {
		return // the reader gets the error
	}
	g.encodings.Keep(rec, v, recordcache.Proto, enveloped, own)
}

// MetadataProto returns the metadata of a record as protobuf of a
// PartialObjectMetadata, without envelope.
func (g *Registry) MetadataProto(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record) ([]byte, error) {
	return g.encodings.Bytes(rec, v, recordcache.MetadataProto, func() ([]byte, error) {
		value, err := g.JSON(ctx, in, v, rec)
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
	if raw := jsontext.Raw(value, "metadata"); raw != nil {
		if err := typed.Decode(raw, m); err != nil {
			return nil, fmt.Errorf("read stored metadata: %w", err)
		}
	}
	return m, nil
}

// Object decodes a record into a version. The caller owns the result.
func (g *Registry) Object(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record) (resource.Object, error) {
	if in.IsStoredVersion(rec, v) {
		return decode(v, rec.Value)
	}
	all, err := g.Objects(ctx, in, v, []*storage.Record{rec})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Objects decodes records into a version. All that were stored in the same other
// version are converted in one call.
func (g *Registry) Objects(ctx context.Context, in *Served, v *resource.Version, recs []*storage.Record) ([]resource.Object, error) {
	return in.objects(v, recs, func(batch []resource.Object) ([]resource.Object, error) {
		return in.ConvertAll(ctx, batch, v.Name)
	})
}

// objects is [Registry.Objects] with what converts objects to v.
func (in *Served) objects(v *resource.Version, recs []*storage.Record, convert func([]resource.Object) ([]resource.Object, error)) ([]resource.Object, error) {
	out := make([]resource.Object, len(recs))
	foreign := map[*resource.Version][]int{}
	for i, rec := range recs {
		obj, stored, err := in.decodeStored(rec)
		if err != nil {
			return nil, err
		}
		old := rec.Modified < in.Storage.Since
		if old {
			if _, err := stored.Strategy.Default(obj); err != nil {
				return nil, apierrors.NewInternalError(fmt.Errorf("read %s: %w", rec.Key, err))
			}
		}
		out[i] = obj
		if stored != v {
			foreign[stored] = append(foreign[stored], i)
		}
	}
	for i := range in.Versions { // in a fixed order, so that errors do not vary
		positions := foreign[&in.Versions[i]]
		if len(positions) == 0 {
			continue
		}
		batch := make([]resource.Object, len(positions))
		for j, p := range positions {
			batch[j] = out[p]
		}
		converted, err := inVersion(v, batch, convert)
		if err != nil {
			return nil, err
		}
		for j, p := range positions {
			out[p] = converted[j]
		}
	}
	return out, nil
}

// inVersion returns objects as convert converts them to a version for a reader. As in
// kube-apiserver, conversions do not see the revision.
func inVersion(v *resource.Version, batch []resource.Object, convert func([]resource.Object) ([]resource.Object, error)) ([]resource.Object, error) {
	revisions := make([]string, len(batch))
	for i, obj := range batch {
		revisions[i] = obj.GetResourceVersion()
		obj.SetResourceVersion("")
	}
	converted, err := convert(batch)
	if err != nil {
		return nil, err
	}
	for i, obj := range converted {
		obj.SetResourceVersion(revisions[i])
		if v.Prune != nil {
			v.Prune(obj)
		}
	}
	return converted, nil
}

// decodeStored decodes a record and returns the version in which it was stored.
func (in *Served) decodeStored(rec *storage.Record) (resource.Object, *resource.Version, error) {
	apiVersion := jsontext.String(rec.Value, "apiVersion")
	if a := in.Storage.Alias; a != nil && a.Kind.GroupVersion().String() == apiVersion {
		kept := a.New()
		if err := typed.Decode(rec.Value, kept); err != nil {
			return nil, nil, apierrors.NewInternalError(fmt.Errorf("decode %s: %w", rec.Key, err))
		}
		obj := a.Load(kept)
		obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind(in.Storage.Version))
		return obj, in.Version(in.Storage.Version), nil
	}
	for i := range in.Versions {
		v := &in.Versions[i]
		if in.APIVersion(v) != apiVersion {
			continue
		}
		obj, err := decode(v, rec.Value)
		if err != nil {
			return nil, nil, apierrors.NewInternalError(fmt.Errorf("decode %s: %w", rec.Key, err))
		}
		return obj, v, nil
	}
	return nil, nil, apierrors.NewInternalError(fmt.Errorf("%s is stored in version %q, which %s no longer has: serve it again, or migrate the object", rec.Key, apiVersion, in.Kind))
}

// decode decodes JSON that this server wrote in a version.
func decode(v *resource.Version, value []byte) (resource.Object, error) {
	if v.New == nil {
		return resource.ParseDoc(value)
	}
	obj := v.New()
	return obj, typed.Decode(value, obj)
}
