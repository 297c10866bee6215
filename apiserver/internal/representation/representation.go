// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package representation encodes stored objects in the representation that a client negotiated:
// whole, as metadata only or as rows of a Table; as JSON or as protobuf. Answers
// (package endpoint) and watches (package watchserver) have it in common.
package representation

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// Representation is how objects of one resource are encoded. Representations that are
// equal give equal bytes.
type Representation struct {
	Choice  negotiation.Choice
	Served  *registry.Served
	Version *resource.Version
}

// Object returns one object, or its PartialObjectMetadata, with its type set: as JSON,
// or as protobuf in its envelope.
func (r *Representation) Object(ctx context.Context, from *registry.Registry, rec *storage.Record) (wire.Pieces, error) {
	whole := r.Choice.Shape == negotiation.Whole
	if r.Choice.Media == negotiation.Protobuf {
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
	metadata := jsontext.Raw(object, "metadata")
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

// Tables makes the Tables of one request.
type Tables struct {
	printer resource.Printer
	include metav1.IncludeObjectPolicy
}

// NewTables returns Tables of a version, whose rows include what the policy says: the
// metadata of their objects by default.
func NewTables(v *resource.Version, include metav1.IncludeObjectPolicy) Tables {
	t := Tables{printer: v.Printer, include: include}
	if t.printer == nil {
		t.printer = table.Default()
	}
	return t
}

// Records returns a Table with a row for each record.
func (t Tables) Records(ctx context.Context, from *registry.Registry, r *Representation, records []*storage.Record) (*metav1.Table, error) {
	out := &metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: r.Choice.MetaAPIVersion()},
		ColumnDefinitions: t.printer.Columns(),
		Rows:              make([]metav1.TableRow, 0, len(records)),
	}
	objects, err := from.Objects(ctx, r.Served, r.Version, records)
	if err != nil {
		return nil, err
	}
	for i, obj := range objects {
		cells, err := t.printer.Cells(obj)
		if err != nil {
			return nil, err
		}
		row := metav1.TableRow{Cells: cells}
		if t.include != metav1.IncludeNone {
			value, err := from.ObjectJSON(r.Served, r.Version, records[i], obj)
			if err != nil {
				return nil, err
			}
			if t.include != metav1.IncludeObject {
				value = r.Metadata(value)
			}
			row.Object = runtime.RawExtension{Raw: value}
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// Record returns a Table of one record, with the resourceVersion of its object. The revision
// of the record may be another: records that are not in the store have none.
func (t Tables) Record(ctx context.Context, from *registry.Registry, r *Representation, rec *storage.Record) (*metav1.Table, error) {
	out, err := t.Records(ctx, from, r, []*storage.Record{rec})
	if err != nil {
		return nil, err
	}
	out.ResourceVersion = jsontext.String(rec.Value, "metadata", "resourceVersion")
	return out, nil
}

// Row returns a Table of one row: the cells of obj beside an object in JSON.
func (t Tables) Row(r *Representation, obj resource.Object, object []byte) (*metav1.Table, error) {
	cells, err := t.printer.Cells(obj)
	if err != nil {
		return nil, err
	}
	return &metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: r.Choice.MetaAPIVersion()},
		ListMeta:          metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()},
		ColumnDefinitions: t.printer.Columns(),
		Rows:              []metav1.TableRow{{Cells: cells, Object: runtime.RawExtension{Raw: object}}},
	}, nil
}

// TableJSON encodes a table. The objects in it are JSON already and are not validated
// again.
func TableJSON(t *metav1.Table) ([]byte, error) {
	head := *t
	head.Rows = []metav1.TableRow{}
	raw, err := json.Marshal(&head)
	if err != nil {
		return nil, err
	}
	raw = bytes.TrimSuffix(raw, []byte("]}"))
	for i := range t.Rows {
		row := &t.Rows[i]
		if i > 0 {
			raw = append(raw, ',')
		}
		cells, err := json.Marshal(row.Cells)
		if err != nil {
			return nil, err
		}
		raw = append(raw, `{"cells":`...)
		raw = append(raw, cells...)
		if len(row.Conditions) > 0 {
			conditions, err := json.Marshal(row.Conditions)
			if err != nil {
				return nil, err
			}
			raw = append(raw, `,"conditions":`...)
			raw = append(raw, conditions...)
		}
		raw = append(raw, `,"object":`...)
		if row.Object.Raw == nil {
			raw = append(raw, "null"...)
		}
		raw = append(raw, row.Object.Raw...)
		raw = append(raw, '}')
	}
	return append(raw, "]}"...), nil
}
