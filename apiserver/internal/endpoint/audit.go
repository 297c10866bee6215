// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/storage"
)

// event returns what is recorded of a request, nil if nothing is.
func (h *Handler) event(req *Request) *audit.Event {
	if !h.options.Audited {
		return nil
	}
	return audit.From(req.HTTP.Context())
}

// sendStatus answers with a Status, and records it.
func (h *Handler) sendStatus(w *exchange.Writer, req *Request, code int, status *metav1.Status) {
	h.event(req).Status(status)
	exchange.SendStatus(w, req.HTTP, code, status)
}

// auditRecord records the object that a client gets, in the shape of the answer and as JSON.
func (h *Handler) auditRecord(ctx context.Context, req *Request, r representation.Representation, rec *storage.Record) {
	e := h.event(req)
	if !e.WantsResponse() {
		return
	}
	r.Choice.Media = negotiation.JSON
	if object, err := r.Object(ctx, h.registry, rec); err == nil { // else the answer fails as well
		e.Response(object.AppendTo(nil))
	}
}
