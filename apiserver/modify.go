// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// create answers a POST to a collection.
func (s *Server) create(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	media, err := negotiate.Input(req.http.Header.Get("Content-Type"), req.offer())
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
	d := s.decoder(req.in, req.Version, options.FieldValidation)
	obj, err := d.body(req, media, data)
	if err != nil {
		return err
	}
	wr := s.newWrite(req, options.DryRun, options.FieldManager, options.FieldValidation)
	rec, err := wr.create(ctx, obj)
	if err != nil {
		return err
	}
	return s.answerRecord(ctx, w, req, choice, http.StatusCreated, req.in, req.Version, rec)
}

// directive is the effective fieldValidation.
func directive(asked string) string {
	if asked == "" {
		return metav1.FieldValidationWarn
	}
	return asked
}

// create stores a new object, under another name while a generated one is
// taken.
func (wr *write) create(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	obj, err := wr.prepareCreate(ctx, obj)
	if err != nil {
		return nil, err
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	for attempt := 1; ; attempt++ {
		candidate := obj
		if generated && attempt < maxNameAttempts {
			candidate = obj.DeepCopyObject().(resource.Object)
		}
		rec, err := wr.insert(ctx, candidate)
		if !errors.Is(err, errKeyTaken) || !generated || attempt == maxNameAttempts {
			return rec, err
		}
	}
}

// prepareCreate does what comes before the object has an identity: ownership
// and admission.
func (wr *write) prepareCreate(ctx context.Context, obj resource.Object) (resource.Object, error) {
	wipeSystemFields(obj)
	if err := settleNamespace(wr.req, wr.in, obj); err != nil {
		return nil, err
	}
	dedupOwners(wr.req, obj, duplicateOwners)
	if wr.req.Name == "" {
		wr.req.Name = obj.GetName()
	}
	empty := wr.v.NewObject()
	empty.GetObjectKind().SetGroupVersionKind(wr.in.GroupVersionKind(wr.v.Name))
	obj, err := wr.own(empty, obj)
	if err != nil {
		return nil, err
	}
	if obj, err = wr.admit(ctx, obj, nil); err != nil {
		return nil, err
	}
	dedupOwners(wr.req, obj, duplicateAfter)
	return obj, nil
}

// update answers a PUT to an object or a subresource of it.
func (s *Server) update(ctx context.Context, w *exchange.Writer, req *request) error {
	if req.sub != nil && req.sub.Scale != nil {
		return s.updateScale(ctx, w, req)
	}
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	data, err := s.readBody(req)
	if err != nil {
		return err
	}
	options, err := updateOptions(req)
	if err != nil {
		return err
	}
	media, err := negotiate.Input(req.http.Header.Get("Content-Type"), req.offer())
	if err != nil {
		return err
	}
	d := s.decoder(req.in, req.Version, options.FieldValidation)
	obj, err := s.wished(req, d, media, data)
	if err != nil {
		return err
	}
	wr := s.newWrite(req, options.DryRun, options.FieldManager, options.FieldValidation)
	wr.creates = req.in.Update.Creates && req.sub == nil
	rec, created, err := wr.replace(ctx, func(ctx context.Context, old resource.Object, _ *storage.Record) (resource.Object, error) {
		wished := obj
		if obj = nil; wished == nil { // used up by an attempt that came too late
			var err error
			if wished, err = s.wished(req, d, media, data); err != nil {
				return nil, err
			}
		}
		return wr.revise(ctx, wished, old)
	})
	if err != nil {
		return err
	}
	return s.answerRecord(ctx, w, req, choice, codeOf(created), req.in, req.Version, rec)
}

// wished returns the object that an update asks for.
func (s *Server) wished(req *request, d *decoder, media negotiate.Media, data []byte) (resource.Object, error) {
	obj, err := d.body(req, media, data)
	if err != nil {
		return nil, err
	}
	if err := settleNamespace(req, req.in, obj); err != nil {
		return nil, err
	}
	if err := checkName(req, obj); err != nil {
		return nil, err
	}
	dedupOwners(req, obj, duplicateOwners)
	return obj, nil
}

func codeOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// revise does to a wished object what precedes its storing: ownership and
// admission. old is nil when it is about to be created.
func (wr *write) revise(ctx context.Context, obj, old resource.Object) (resource.Object, error) {
	if old == nil {
		return wr.prepareCreate(ctx, obj)
	}
	obj, err := wr.own(old, obj)
	if err != nil {
		return nil, err
	}
	return wr.admitRevision(ctx, obj, old)
}

func (wr *write) admitRevision(ctx context.Context, obj, old resource.Object) (resource.Object, error) {
	obj, err := wr.admit(ctx, obj, old)
	if err != nil {
		return nil, err
	}
	dedupOwners(wr.req, obj, duplicateAfter)
	return obj, nil
}
