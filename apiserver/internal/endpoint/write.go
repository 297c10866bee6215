// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"net/http"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// create answers a POST to a collection.
func (h *Handler) create(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	obj, options, err := h.readCreate(req, req.Served, req.Version)
	if err != nil {
		return err
	}
	op := h.newOperation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	op.Protobuf = choice.WholeProtobuf()
	rec, err := op.Create(ctx, obj)
	if err != nil {
		return err
	}
	return h.answerRecord(ctx, w, req, choice, http.StatusCreated, req.Served, req.Version, rec)
}

// update answers a PUT to an object or a subresource of it.
func (h *Handler) update(ctx context.Context, w *exchange.Writer, req *Request) error {
	if req.Sub != nil && req.Sub.Scale != nil {
		return h.updateScale(ctx, w, req)
	}
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	put, options, err := h.readUpdate(req, req.Served, req.Version)
	if err != nil {
		return err
	}
	op := h.newOperation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	op.Protobuf = choice.WholeProtobuf()
	op.Creates = req.Served.Update.Creates && req.Sub == nil
	rec, created, err := op.Replace(ctx, func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		wished, err := put.object()
		if err != nil {
			return nil, err
		}
		return op.PrepareUpdate(ctx, wished, old)
	})
	if err != nil {
		return err
	}
	return h.answerRecord(ctx, w, req, choice, codeOf(created), req.Served, req.Version, rec)
}

func codeOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}
