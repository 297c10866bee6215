// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"context"

	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Representation is how objects of one resource are encoded. Representations that are
// equal give equal bytes.
type Representation struct {
	Choice  negotiate.Choice
	Served  *registry.Served
	Version *resource.Version
}

// Object returns one object, or its PartialObjectMetadata, with its type set: as JSON,
// or as protobuf in its envelope.
func (r *Representation) Object(ctx context.Context, from *registry.Registry, rec *storage.Record) (wire.Pieces, error) {
	whole := r.Choice.Shape == negotiate.Whole
	if r.Choice.Media == negotiate.Protobuf {
		if !whole {
			raw, err := from.MetadataProto(ctx, r.Served, r.Version, rec)
			return wire.Pieces{Head: wire.Envelope(r.Choice.MetaAPIVersion(), "PartialObjectMetadata", raw)}, err
		}
		return from.Proto(ctx, r.Served, r.Version, rec)
	}
	value, err := from.JSON(ctx, r.Served, r.Version, rec)
	if err != nil || whole {
		return wire.Pieces{Head: value}, err
	}
	return wire.Pieces{Head: r.Metadata(value)}, nil
}

// Metadata returns the PartialObjectMetadata of an object in JSON, as JSON.
func (r *Representation) Metadata(object []byte) []byte {
	metadata := wire.Raw(object, "metadata")
	if metadata == nil {
		metadata = []byte("{}")
	}
	version := r.Choice.MetaAPIVersion()
	out := make([]byte, 0, len(metadata)+len(version)+64)
	out = append(out, `{"kind":"PartialObjectMetadata","apiVersion":"`...)
	out = append(out, version...)
	out = append(out, `","metadata":`...)
	out = append(out, metadata...)
	return append(out, '}')
}
