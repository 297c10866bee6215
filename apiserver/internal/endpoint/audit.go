// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// event returns what is recorded of a request, nil if nothing is.
func (h *Handler) event(req *Request) *audit.Event {
	if !h.options.Audited {
		return nil
	}
	return audit.From(req.HTTP.Context())
}

// auditObject records the object that a client has sent.
func (h *Handler) auditObject(req *Request, obj resource.Object) {
	e := h.event(req)
	if e == nil {
		return
	}
	e.Names(obj)
	if !e.WantsRequest() {
		return
	}
	if text, err := resource.EncodeObject(obj); err == nil { // it was decoded from such a text
		e.Request(text)
	}
}

// auditPatch records a patch, or an applied configuration as JSON.
func (h *Handler) auditPatch(req *Request, p *patcher) {
	e := h.event(req)
	if !e.WantsRequest() {
		return
	}
	text := p.body
	if p.applied != nil {
		var err error
		if text, err = resource.EncodeObject(p.applied); err != nil { // it was decoded from such a text
			return
		}
	}
	e.Request(text)
}

// auditDeletion records the options that are the body of a deletion.
func (h *Handler) auditDeletion(req *Request, o *metav1.DeleteOptions) {
	e := h.event(req)
	if !e.WantsRequest() {
		return
	}
	sent := *o
	if sent.Kind == "" {
		sent.TypeMeta = registry.OptionsKind("DeleteOptions")
	}
	if text, err := json.Marshal(&sent); err == nil { // options have nothing that cannot be encoded
		e.Request(text)
	}
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
