// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// answerRecord answers with one object in the negotiated representation.
func (h *Handler) answerRecord(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, code int, in *registry.Served, v *resource.Version, rec *storage.Record) error {
	r := representation.Representation{Choice: choice, Served: in, Version: v}
	switch choice.Shape {
	case negotiation.MetadataList:
		if !v.Typed() {
			return errors.New("content is not a list") // a 500, as kube-apiserver answers
		}
		return negotiation.Refused(fmt.Sprintf("you requested PartialObjectMetadataList, but the requested object is not a list (%s)", in.Kind))
	}
	converted, err := h.registry.Converted(ctx, in, v, rec)
	if err != nil {
		return in.Corrupt(ctx, rec, err)
	}
	rec = converted
	switch choice.Shape {
	case negotiation.Table:
		tables, err := newTables(req, v)
		if err != nil {
			return err
		}
		t, err := tables.Record(ctx, h.registry, &r, rec)
		if err != nil {
			return err
		}
		return h.answerTable(w, req, choice, code, t)
	}
	object, err := r.Object(ctx, h.registry, rec)
	if err != nil {
		return err
	}
	h.auditRecord(ctx, req, r, rec)
	b := exchange.NewBody(2)
	b.AddPieces(object)
	if choice.Media == negotiation.Protobuf {
		exchange.Send(w, req.HTTP, code, choice.Media.ContentType(), b)
		return nil
	}
	return exchange.SendJSON(w, req.HTTP, code, choice, b)
}

// answerList answers with a page of objects in the negotiated representation.
func (h *Handler) answerList(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, p *registry.Page) error {
	in, v := req.Served, req.Version
	r := representation.Representation{Choice: choice, Served: in, Version: v}
	switch choice.Shape {
	case negotiation.Metadata:
		return negotiation.Refused(fmt.Sprintf("you requested PartialObjectMetadata, but the requested object is a list (%s)", in.ListKind))
	case negotiation.Table:
		tables, err := newTables(req, v)
		if err != nil {
			return err
		}
		t, err := tables.Records(ctx, h.registry, &r, p.Records)
		if err != nil {
			return err
		}
		t.ListMeta = listMeta(p)
		return h.answerTable(w, req, choice, 200, t)
	}
	kind, apiVersion := in.ListKind, in.APIVersion(v)
	if choice.Shape == negotiation.MetadataList {
		kind, apiVersion = "PartialObjectMetadataList", choice.MetaAPIVersion()
	}
	if choice.Media == negotiation.Protobuf {
		if e := h.event(req); e.WantsResponse() {
			r.Choice.Media = negotiation.JSON
			b := exchange.NewBody(2*len(p.Records) + 2)
			if err := h.listJSON(ctx, b, r, p, kind, apiVersion); err != nil {
				return err
			}
			e.Response(b.Bytes())
		}
		return h.answerProtoList(ctx, w, req, choice, p, kind, apiVersion)
	}
	b := exchange.NewBody(2*len(p.Records) + 2)
	if err := h.listJSON(ctx, b, r, p, kind, apiVersion); err != nil {
		return err
	}
	if e := h.event(req); e.WantsResponse() {
		e.Response(b.Bytes())
	}
	return exchange.SendJSON(w, req.HTTP, 200, choice, b)
}

// listJSON adds a page of objects, or of their metadata, to an answer as JSON.
func (h *Handler) listJSON(ctx context.Context, b *exchange.Body, r representation.Representation, p *registry.Page, kind, apiVersion string) error {
	in, v, choice := r.Served, r.Version, r.Choice
	if len(p.Records) == 0 && choice.Shape == negotiation.MetadataList { // kube-apiserver sends null here
		b.Add(append(bytes.TrimSuffix(openList(p, kind, apiVersion, false), []byte("[")), "null}"...))
		return nil
	}
	b.Add(openList(p, kind, apiVersion, !v.Typed() && choice.Shape == negotiation.Whole))
	comma := []byte(",")
	for i, rec := range p.Records {
		if i > 0 {
			b.Add(comma)
		}
		value, err := h.registry.JSON(ctx, in, v, rec)
		if err != nil {
			return err
		}
		switch {
		case choice.Shape == negotiation.MetadataList:
			b.Add(r.Metadata(value))
		case v.Typed():
			open, rest := jsontext.Untyped(value)
			b.Add(open)
			b.Add(rest)
		default:
			b.Add(value)
		}
	}
	b.AddString("]}")
	return nil
}

// listMeta returns the list metadata of a page.
func listMeta(p *registry.Page) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: strconv.FormatInt(int64(p.Revision), 10), Continue: p.Continue, RemainingItemCount: p.Remaining}
}

// openList returns the JSON of a list up to its first item. Lists of custom resources
// always have a continue field, empty on the last page, as in kube-apiserver.
func openList(p *registry.Page, kind, apiVersion string, custom bool) []byte {
	out := make([]byte, 0, 128)
	out = append(out, `{"kind":`...)
	out = strconv.AppendQuote(out, kind)
	out = append(out, `,"apiVersion":`...)
	out = strconv.AppendQuote(out, apiVersion)
	out = append(out, `,"metadata":{"resourceVersion":"`...)
	out = strconv.AppendInt(out, int64(p.Revision), 10)
	out = append(out, '"')
	if p.Continue != "" || custom {
		out = append(out, `,"continue":"`...)
		out = append(out, p.Continue...)
		out = append(out, '"')
	}
	if p.Remaining != nil {
		out = append(out, `,"remainingItemCount":`...)
		out = strconv.AppendInt(out, *p.Remaining, 10)
	}
	return append(out, `},"items":[`...)
}

func (h *Handler) answerProtoList(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, p *registry.Page, kind, apiVersion string) error {
	meta := listMeta(p)
	raw, err := meta.Marshal()
	if err != nil {
		return err
	}
	// The envelope begins with the size of the content: the pieces are collected first
	// and written once, without a copy of the whole.
	b := exchange.NewBody(2*len(p.Records) + 2)
	heads := wire.AppendBytes(make([]byte, 0, len(raw)+maxItemHead*(len(p.Records)+1)), 1, raw)
	b.Add(heads)
	for _, rec := range p.Records {
		from := len(heads)
		if choice.Shape == negotiation.MetadataList {
			item, err := h.registry.MetadataProto(ctx, req.Served, req.Version, rec)
			if err != nil {
				return err
			}
			heads = wire.AppendHead(heads, 2, len(item))
			b.Add(heads[from:])
			b.Add(item)
			continue
		}
		item, err := h.registry.Proto(ctx, req.Served, req.Version, rec)
		if err != nil {
			return err
		}
		length, pieces := wire.Content(item)
		heads = wire.AppendHead(heads, 2, length)
		b.Add(heads[from:])
		for piece := range pieces {
			b.Add(piece)
		}
	}
	b.Begin(wire.OpenEnvelope(apiVersion, kind, b.Len(), 0))
	b.AddString(wire.EnvelopeEnd)
	exchange.Send(w, req.HTTP, 200, choice.Media.ContentType(), b)
	return nil
}

// maxItemHead is the largest size of the tag and length before an item of a protobuf
// list, in bytes.
const maxItemHead = 8

// newTables returns the Tables of a version that a request asks for.
func newTables(req *Request, v *resource.Version) (representation.Tables, error) {
	options := &metav1.TableOptions{}
	if err := decodeQuery(req, options); err != nil {
		return representation.Tables{}, err
	}
	if errs := metavalidation.ValidateTableOptions(options); len(errs) > 0 {
		return representation.Tables{}, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", errs.ToAggregate()))
	}
	return representation.NewTables(v, options.IncludeObject), nil
}

func (h *Handler) answerTable(w *exchange.Writer, req *Request, choice negotiation.Choice, code int, t *metav1.Table) error {
	raw, err := representation.TableJSON(t)
	if err != nil {
		return err
	}
	h.event(req).Response(raw)
	b := exchange.NewBody(2)
	b.Add(raw)
	return exchange.SendJSON(w, req.HTTP, code, choice, b)
}
