// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// convertedAtOnce is how many records of a collection are converted before the first of
// them is selected.
const convertedAtOnce = 500

// Converted returns a record in a version: rec itself, unless its resource has
// [resource.Resource.RemoteConversion] and it is stored in another version. It is then
// converted, and the result is a record that is not in the store.
func (g *Registry) Converted(ctx context.Context, in *Served, v *resource.Version, rec *storage.Record) (*storage.Record, error) {
	if !in.RemoteConversion || in.IsStoredVersion(rec, v) {
		return rec, nil
	}
	all, err := in.convertRecords(ctx, v, []*storage.Record{rec})
	if err != nil {
		return nil, err
	}
	return convertedRecord(rec, all[0]), nil
}

// ConvertedAll is [Registry.Converted] for many records. It remembers what it converts: a
// record is converted once for all lists and watches, within the limits of the cache.
func (g *Registry) ConvertedAll(ctx context.Context, in *Served, v *resource.Version, recs []*storage.Record) ([]*storage.Record, error) {
	if !in.RemoteConversion {
		return recs, nil
	}
	out := make([]*storage.Record, len(recs))
	var cold []*storage.Record
	var at []int
	for i, rec := range recs {
		if out[i] = rec; in.IsStoredVersion(rec, v) {
			continue
		}
		if known, ok := recordcache.Cached(rec, v, recordcache.JSON); ok {
			out[i] = convertedRecord(rec, known.Head)
			continue
		}
		cold, at = append(cold, rec), append(at, i)
	}
	if len(cold) == 0 {
		return out, nil
	}
	values, err := in.convertRecords(ctx, v, cold)
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		g.encodings.Keep(cold[i], v, recordcache.JSON, wire.Pieces{Head: value}, len(value))
		out[at[i]] = convertedRecord(cold[i], value)
	}
	return out, nil
}

// convertRecords returns records as JSON in a version.
func (in *Served) convertRecords(ctx context.Context, v *resource.Version, recs []*storage.Record) ([][]byte, error) {
	objects, err := in.objects(v, recs, func(batch []resource.Object) ([]resource.Object, error) {
		out, err := in.Convert(ctx, batch, v.Name)
		if err == nil && len(out) != len(batch) {
			err = apierrors.NewInternalError(fmt.Errorf("convert %s to %s: got %d objects for %d", in.Kind, v.Name, len(out), len(batch)))
		}
		return out, err
	})
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(objects))
	for i, obj := range objects {
		if values[i], err = resource.EncodeObject(obj); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	return values, nil
}

// undecodable is the error of a write of a stored object that cannot be converted: err, with
// the revision of the object. An answer of the API, and that of a request that has ended,
// remain what they are.
func undecodable(ctx context.Context, rec *storage.Record, err error) error {
	if status := apierrors.APIStatus(nil); err == nil || ctx.Err() != nil || errors.As(err, &status) {
		return err
	}
	return fmt.Errorf("object not decodable revision=%d: %w", rec.Modified, err)
}

// Corrupt is the answer to a request that reads or deletes a stored object which cannot be
// converted, for err.
func (in *Served) Corrupt(ctx context.Context, rec *storage.Record, err error) error {
	found := undecodable(ctx, rec, err)
	if found == err { //nolint:errorlint // it was left as it is
		return err
	}
	key := "/" + in.Plural + "/" + rec.Key.Name
	if group := in.StoredKind().Group; group != "" {
		key = "/" + group + key
	}
	return apierrors.NewInternalError(fmt.Errorf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %w", key, found))
}

// convertedRecord returns a record with the JSON of its object in another version.
func convertedRecord(rec *storage.Record, value []byte) *storage.Record {
	out := &storage.Record{Key: rec.Key, Value: value, Created: rec.Created, Modified: recordcache.Transient}
	if start, _, ok := jsontext.Find(value, "metadata", "resourceVersion"); ok {
		out.Stamp = start + len(`"`)
	}
	return out
}

// Converted yields records in the version of the selection; see [Registry.ConvertedAll]. It
// ends with the first error.
func (sel *Selection) Converted(ctx context.Context, recs iter.Seq[*storage.Record]) iter.Seq2[*storage.Record, error] {
	if !sel.in.RemoteConversion {
		return unconverted(recs)
	}
	return func(yield func(*storage.Record, error) bool) {
		batch := make([]*storage.Record, 0, convertedAtOnce)
		flush := func() bool {
			converted, err := sel.g.ConvertedAll(ctx, sel.in, sel.v, batch)
			if err != nil {
				yield(nil, err)
				return false
			}
			batch = batch[:0]
			for _, rec := range converted {
				if !yield(rec, nil) {
					return false
				}
			}
			return true
		}
		for rec := range recs {
			if batch = append(batch, rec); len(batch) == convertedAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// unconverted yields records as they are stored.
func unconverted(recs iter.Seq[*storage.Record]) iter.Seq2[*storage.Record, error] {
	return func(yield func(*storage.Record, error) bool) {
		for rec := range recs {
			if !yield(rec, nil) {
				return
			}
		}
	}
}
