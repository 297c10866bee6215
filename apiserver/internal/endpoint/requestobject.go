// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

// readCreate decodes the body and the options of a POST.
func (h *Handler) readCreate(req *Request, in *registry.Served, v *resource.Version) (resource.Object, *metav1.CreateOptions, error) {
	media, err := negotiation.Input(req.HTTP.Header.Get("Content-Type"), negotiation.Offer{Protobuf: v.Protobuf()})
	if err != nil {
		return nil, nil, err
	}
	data, err := h.readBody(req)
	if err != nil {
		return nil, nil, err
	}
	options, err := createOptions(req)
	if err != nil {
		return nil, nil, err
	}
	obj, err := h.decoder(in, v, options.FieldValidation).Decode(&req.Request, media, data)
	if err == nil {
		h.event(req).RequestedObject(obj)
	}
	return obj, options, err
}

// updateBody is the body of a PUT. It is decoded once per attempt, because a write owns
// and changes its object.
type updateBody struct {
	h     *Handler
	req   *Request
	in    *registry.Served
	d     *body.Decoder
	media negotiation.Media
	data  []byte
	next  resource.Object
}

// readUpdate reads the body and the options of a PUT.
func (h *Handler) readUpdate(req *Request, in *registry.Served, v *resource.Version) (*updateBody, *metav1.UpdateOptions, error) {
	data, err := h.readBody(req)
	if err != nil {
		return nil, nil, err
	}
	options, err := updateOptions(req)
	if err != nil {
		return nil, nil, err
	}
	media, err := negotiation.Input(req.HTTP.Header.Get("Content-Type"), negotiation.Offer{Protobuf: v.Protobuf()})
	if err != nil {
		return nil, nil, err
	}
	p := &updateBody{h: h, req: req, in: in, d: h.decoder(in, v, options.FieldValidation), media: media, data: data}
	p.next, err = p.decode()
	return p, options, err
}

// object returns the decoded body. The caller owns it: every call returns another copy.
func (p *updateBody) object() (resource.Object, error) {
	if obj := p.next; obj != nil {
		p.next = nil
		return obj, nil
	}
	return p.decode()
}

func (p *updateBody) decode() (resource.Object, error) {
	obj, err := p.d.Decode(&p.req.Request, p.media, p.data)
	if err != nil {
		return nil, err
	}
	p.h.event(p.req).RequestedObject(obj)
	if err := objectmeta.EnsureNamespace(&p.req.Request, p.in.Resource, obj); err != nil {
		return nil, err
	}
	if err := objectmeta.EnsureName(&p.req.Request, obj); err != nil {
		return nil, err
	}
	objectmeta.DedupOwnerReferences(&p.req.Request, obj)
	return obj, nil
}
