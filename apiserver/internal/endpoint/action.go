// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

// action answers a POST to a subresource that is an action, such as a Pod's binding.
// The uid and the resourceVersion of the body are preconditions.
func (h *Handler) action(ctx context.Context, w *exchange.Writer, req *Request) error {
	sub := req.Sub
	in, v := h.subresourceKind(req)
	choice, err := negotiation.Output(req.HTTP, negotiation.Offer{Protobuf: v.Protobuf()})
	if err != nil {
		return err
	}
	body, options, err := h.readCreate(req, in, v)
	if err != nil {
		return err
	}
	if err := objectmeta.EnsureNamespace(&req.Request, in.Resource, body); err != nil {
		return err
	}
	if sub.NewAnswer != nil && body.GetName() == "" {
		body.SetName(req.Name)
	}
	if body.GetName() != req.Name {
		return apierrors.NewBadRequest("name in URL does not match name in " + sub.Kind.Kind + " object")
	}
	o := writeOptions(options.DryRun, options.FieldManager, options.FieldValidation)
	op := h.newOperation(req, o)
	op.Strategy, op.FieldManager = v.Strategy, nil
	if body, err = op.Admit(ctx, body, nil); err != nil {
		return err
	}
	if err := op.Validate(ctx, body, nil); err != nil {
		return err
	}
	answer, err := h.act(ctx, req, o, body)
	if err != nil {
		return err
	}
	if answer == nil {
		h.sendStatus(w, req, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
		return nil
	}
	in, v = h.kindBelow(req, resource.Version{Name: sub.Answer.Version, New: sub.NewAnswer}, sub.Answer)
	rec, err := h.registry.TransientRecord(in, v, answer)
	if err != nil {
		return err
	}
	return h.answerRecord(ctx, w, req, choice, http.StatusCreated, in, v, rec)
}

// act calls the action with the object and stores what it has changed.
func (h *Handler) act(ctx context.Context, req *Request, o registry.WriteOptions, body resource.Object) (answer resource.Object, err error) {
	r := req.Request
	var strategy resource.Strategy = noRules{}
	var ownership resource.FieldManager
	if t := req.Sub.Target; t != nil {
		r.Version, strategy, ownership = req.Served.Version(t.Version), t.Strategy, t.FieldManager
	}
	op := h.registry.NewOperation(&r, req.Served, req.Sub, o)
	op.Strategy, op.FieldManager, op.MetadataErrors = strategy, ownership, resource.MetadataErrors{}
	change := func(ctx context.Context, old resource.Object) (resource.Object, error) {
		if err := op.CheckPreconditions(body.GetUID(), body.GetResourceVersion(), old); err != nil {
			return nil, err
		}
		obj := old.DeepCopyObject().(resource.Object)
		var err error
		if answer, err = req.Sub.Action(ctx, obj, body); err != nil {
			return nil, err
		}
		if _, err := strategy.Default(obj); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("after %s: %w", req.Sub.Name, err))
		}
		return op.UpdateManagedFields(ctx, old, obj)
	}
	at := *req
	at.Request = r
	_, _, err = h.replace(ctx, &at, op, change)
	return answer, err
}
