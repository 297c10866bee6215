// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// create answers a POST to a collection.
func (h *Handler) create(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	media, err := negotiate.Input(req.HTTP.Header.Get("Content-Type"), req.offer())
	if err != nil {
		return err
	}
	data, err := h.readBody(req)
	if err != nil {
		return err
	}
	options, err := createOptions(req)
	if err != nil {
		return err
	}
	d := h.decoder(req.Served, req.Version, options.FieldValidation)
	obj, err := d.Decode(&req.Request, media, data)
	if err != nil {
		return err
	}
	wr := h.newWrite(req, registry.WriteOptions{DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation})
	rec, err := wr.Create(ctx, obj)
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
	data, err := h.readBody(req)
	if err != nil {
		return err
	}
	options, err := updateOptions(req)
	if err != nil {
		return err
	}
	media, err := negotiate.Input(req.HTTP.Header.Get("Content-Type"), req.offer())
	if err != nil {
		return err
	}
	d := h.decoder(req.Served, req.Version, options.FieldValidation)
	obj, err := h.wished(req, d, media, data)
	if err != nil {
		return err
	}
	wr := h.newWrite(req, registry.WriteOptions{DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation})
	wr.Creates = req.Served.Update.Creates && req.Sub == nil
	rec, created, err := wr.Replace(ctx, func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		wished := obj
		if obj = nil; wished == nil { // used up by an attempt that came too late
			var err error
			if wished, err = h.wished(req, d, media, data); err != nil {
				return nil, err
			}
		}
		return wr.Revise(ctx, wished, old)
	})
	if err != nil {
		return err
	}
	return h.answerRecord(ctx, w, req, choice, codeOf(created), req.Served, req.Version, rec)
}

// wished returns the object that an update asks for.
func (h *Handler) wished(req *Request, d *body.Decoder, media negotiate.Media, data []byte) (resource.Object, error) {
	obj, err := d.Decode(&req.Request, media, data)
	if err != nil {
		return nil, err
	}
	if err := registry.SettleNamespace(&req.Request, req.Served, obj); err != nil {
		return nil, err
	}
	if err := checkName(&req.Request, obj); err != nil {
		return nil, err
	}
	registry.DedupOwners(&req.Request, obj)
	return obj, nil
}

func codeOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// checkName holds an object to the name in the path.
func checkName(req *resource.Request, obj resource.Object) error {
	if obj.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", req.Name))
	}
	if obj.GetName() != req.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), req.Name))
	}
	return nil
}
