// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

// posted returns the object that a POST sends, and its options.
func (h *Handler) posted(req *Request, in *registry.Served, v *resource.Version) (resource.Object, *metav1.CreateOptions, error) {
	media, err := negotiate.Input(req.HTTP.Header.Get("Content-Type"), negotiate.Offer{Protobuf: v.Typed()})
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
	return obj, options, err
}

// put is what a PUT sends.
type put struct {
	req   *Request
	in    *registry.Served
	d     *body.Decoder
	media negotiate.Media
	data  []byte
	next  resource.Object
}

// put returns what a PUT sends, and its options.
func (h *Handler) put(req *Request, in *registry.Served, v *resource.Version) (*put, *metav1.UpdateOptions, error) {
	data, err := h.readBody(req)
	if err != nil {
		return nil, nil, err
	}
	options, err := updateOptions(req)
	if err != nil {
		return nil, nil, err
	}
	media, err := negotiate.Input(req.HTTP.Header.Get("Content-Type"), negotiate.Offer{Protobuf: v.Typed()})
	if err != nil {
		return nil, nil, err
	}
	p := &put{req: req, in: in, d: h.decoder(in, v, options.FieldValidation), media: media, data: data}
	p.next, err = p.decode()
	return p, options, err
}

// object returns the object that is sent. The caller owns it: every call returns
// another one.
func (p *put) object() (resource.Object, error) {
	if obj := p.next; obj != nil {
		p.next = nil
		return obj, nil
	}
	return p.decode()
}

func (p *put) decode() (resource.Object, error) {
	obj, err := p.d.Decode(&p.req.Request, p.media, p.data)
	if err != nil {
		return nil, err
	}
	if err := registry.SettleNamespace(&p.req.Request, p.in, obj); err != nil {
		return nil, err
	}
	if err := checkName(&p.req.Request, obj); err != nil {
		return nil, err
	}
	registry.DedupOwners(&p.req.Request, obj)
	return obj, nil
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
