// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/registry"
)

// get answers one object, or one of its subresources.
func (h *Handler) get(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.answerOffer())
	if err != nil {
		return err
	}
	var options metav1.GetOptions
	if req.HTTP.URL.RawQuery != "" {
		if exchange.IsTrue(req.Query(), "export") {
			return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
		}
		if err := decodeQuery(req, &options); err != nil {
			return err
		}
	}
	at, err := registry.ParseRevision(options.ResourceVersion)
	if err != nil {
		return err // a 500, as kube-apiserver answers
	}
	rec, err := h.registry.Get(ctx, req.Served, req.Namespace, req.Name, at)
	if err != nil {
		return err
	}
	if req.Sub != nil && req.Sub.Scale != nil {
		obj, err := h.registry.Object(ctx, req.Served, req.Version, rec)
		if err != nil {
			return err
		}
		scale, err := registry.Scale(req.Sub.Scale, obj)
		if err != nil {
			return err
		}
		return h.answerScale(ctx, w, req, choice, scale)
	}
	return h.answerRecord(ctx, w, req, choice, 200, req.Served, req.Version, rec)
}

// list answers the objects of a collection.
func (h *Handler) list(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, sel, err := h.listOptions(req)
	if err != nil {
		return err
	}
	p, err := h.registry.List(ctx, sel, options)
	if err != nil {
		return err
	}
	return h.answerList(ctx, w, req, choice, p)
}
