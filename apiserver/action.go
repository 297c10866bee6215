// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// act answers a POST to a subresource that is an action. The uid and the
// resourceVersion of the body are preconditions.
func (s *Server) act(ctx context.Context, w *exchange.Writer, req *request) error {
	sub := req.sub
	in, v := req.described()
	offer := negotiate.Offer{Protobuf: v.Typed()}
	if _, err := negotiate.Output(req.http, offer); err != nil {
		return err
	}
	media, err := negotiate.Input(req.http.Header.Get("Content-Type"), offer)
	if err != nil {
		return err
	}
	data, err := s.readBody(req)
	if err != nil {
		return err
	}
	options, err := createOptions(req)
	if err != nil {
		return err
	}
	d := s.decoder(in, v, options.FieldValidation)
	body, err := d.body(req, media, data)
	if err != nil {
		return err
	}
	if err := settleNamespace(req, in, body); err != nil {
		return err
	}
	if body.GetName() != req.Name {
		return apierrors.NewBadRequest("name in URL does not match name in " + sub.Kind.Kind + " object")
	}
	wr := s.newWrite(req, options.DryRun, options.FieldManager, options.FieldValidation)
	wr.strategy, wr.ownership = v.Strategy, nil
	if body, err = wr.admit(ctx, body, nil); err != nil {
		return err
	}
	if err := wr.validated(ctx, body, nil); err != nil {
		return err
	}
	_, _, err = wr.replace(ctx, func(_ context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		obj := old.DeepCopyObject().(resource.Object)
		obj.SetUID(body.GetUID())
		obj.SetResourceVersion(body.GetResourceVersion())
		if err := wr.checkRevision(obj, old); err != nil {
			return nil, err
		}
		obj.SetUID(old.GetUID())
		err := sub.Action(obj, body)
		var classified apierrors.APIStatus
		if err != nil && !errors.As(err, &classified) {
			gr := in.GroupResource()
			return nil, apierrors.NewConflict(schema.GroupResource{Group: gr.Group, Resource: gr.Resource + "/" + sub.Name}, req.Name, err)
		}
		return obj, err
	})
	if err != nil {
		return err
	}
	exchange.SendStatus(w, req.http, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	return nil
}
