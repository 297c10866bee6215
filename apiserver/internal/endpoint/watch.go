// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/internal/watchserver"
)

// watch validates the options of a watch, and serves it.
func (h *Handler) watch(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, sel, err := h.listOptions(req)
	if err != nil {
		return err
	}
	after, err := registry.ParseRevision(options.ResourceVersion)
	if err != nil {
		return err // a 500, as kube-apiserver answers
	}
	watch, err := h.newWatch(req, choice, options, sel)
	if err != nil {
		return err
	}
	watch.After = after
	return h.watches.Serve(ctx, w, watch)
}

// newWatch returns the watch that req asks for.
func (h *Handler) newWatch(req *Request, choice negotiation.Choice, options *internalversion.ListOptions, sel *registry.Selection) (*watchserver.Request, error) {
	out := &watchserver.Request{
		HTTP:           req.HTTP,
		Representation: representation.Representation{Choice: choice, Served: req.Served, Version: req.Version},
		Selection:      sel, Options: options,
		Metrics: h.options.Watched(&req.Request),
		Status:  func(err error) *metav1.Status { return h.Status(req, err) },
	}
	if choice.Shape != negotiation.Table {
		return out, nil
	}
	var err error
	out.Tables, err = newTables(req, req.Version)
	return out, err
}
