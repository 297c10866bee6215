// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/genname"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

func (c *backendHandler) create(ctx context.Context, w *exchange.Writer, req *Request, b resource.Creater) error {
	choice, err := negotiation.Output(req.HTTP, c.offer(req))
	if err != nil {
		return err
	}
	obj, options, err := c.h.readCreate(req, c.in, c.v)
	if err != nil {
		return err
	}
	if err := objectmeta.EnsureNamespace(&req.Request, c.in.Resource, obj); err != nil {
		return err
	}
	op := c.operation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	if c.own(req) {
		obj, err = op.PrepareAnswer(ctx, obj)
	} else {
		obj, err = op.PrepareCreate(ctx, obj)
	}
	if err != nil {
		return err
	}
	if obj, err = c.insert(ctx, req, op, b, obj, options); err != nil {
		return err
	}
	if obj == nil {
		c.h.sendStatus(w, req, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
		return nil
	}
	return c.answer(ctx, w, req, choice, http.StatusCreated, obj)
}

// insert has a backend create an object. While a generated name is taken, it tries others.
func (c *backendHandler) insert(ctx context.Context, req *Request, op *registry.Operation, b resource.Creater, obj resource.Object, options *metav1.CreateOptions) (created resource.Object, err error) {
	err = genname.Try(obj, func(candidate resource.Object) (taken bool, err error) {
		created, err = c.createOne(ctx, req, op, b, candidate, options)
		return apierrors.IsAlreadyExists(err), err
	})
	return created, err
}

// createOne has a backend create an object. One that can be read afterwards gets a name, a
// uid and a time; the others are questions, which have none.
func (c *backendHandler) createOne(ctx context.Context, req *Request, op *registry.Operation, b resource.Creater, obj resource.Object, options *metav1.CreateOptions) (resource.Object, error) {
	if _, kept := b.(resource.Getter); kept && !c.own(req) {
		if err := op.CompleteNew(ctx, obj); err != nil {
			return nil, err
		}
		if err := registry.TakeRevision(obj); err != nil {
			return nil, err
		}
	} else if err := c.validate(ctx, op, obj, nil); err != nil {
		return nil, err
	}
	obj, err := c.in.ToBackend(ctx, c.v, obj)
	if err != nil {
		return nil, err
	}
	return b.Create(ctx, &req.Request, obj, options)
}

// validate applies the rules of the kind to an object whose metadata is the backend's.
func (c *backendHandler) validate(ctx context.Context, op *registry.Operation, obj, old resource.Object) error {
	op.Strategy.Prepare(ctx, obj, old)
	if errs := op.Strategy.Validate(ctx, obj, old); len(errs) > 0 {
		return apierrors.NewInvalid(c.in.GroupKind(obj), obj.GetName(), errs)
	}
	for _, text := range op.Strategy.Warnings(ctx, obj, old) {
		op.Request.Warn(text)
	}
	return op.Validate(ctx, obj, old)
}

// operation prepares a write of an object of the backend.
func (c *backendHandler) operation(req *Request, o registry.WriteOptions) *registry.Operation {
	op := c.h.newOperation(req, o)
	if c.own(req) {
		op.Served, op.Version, op.Strategy, op.FieldManager = c.in, c.v, c.v.Strategy, c.v.FieldManager
	}
	return op
}

// change returns the object that a request wishes in the place of the current one, after
// admission; old is nil if there is none.
type change func(ctx context.Context, old resource.Object) (resource.Object, error)

// update answers PUT and PATCH.
func (c *backendHandler) update(ctx context.Context, w *exchange.Writer, req *Request, b resource.Updater) error {
	choice, err := negotiation.Output(req.HTTP, c.offer(req))
	if err != nil {
		return err
	}
	wished, op, err := c.desired(req)
	if err != nil {
		return err
	}
	obj, created, err := c.replaceOrCreate(ctx, req, op, b, wished)
	if op.Creates && apierrors.IsAlreadyExists(err) { // another request has created it meanwhile
		obj, created, err = c.replaceOrCreate(ctx, req, op, b, wished)
	}
	if err != nil {
		return err
	}
	return c.answer(ctx, w, req, choice, codeOf(created), obj)
}

// replaceOrCreate has a backend replace an object, or create it if it is absent and the
// write may create it.
func (c *backendHandler) replaceOrCreate(ctx context.Context, req *Request, op *registry.Operation, b resource.Updater, wished change) (obj resource.Object, created bool, err error) {
	found := false
	obj, err = c.replace(ctx, req, op, b, func(ctx context.Context, old resource.Object) (resource.Object, error) {
		found = true
		return wished(ctx, old)
	})
	creater, creates := b.(resource.Creater)
	if found || !creates || !op.Creates || !apierrors.IsNotFound(err) {
		return obj, false, err
	}
	if obj, err = wished(ctx, nil); err != nil {
		return nil, false, err
	}
	if err := op.AuthorizeCreate(ctx); err != nil {
		return nil, false, err
	}
	obj, err = c.insert(ctx, req, op, creater, obj, op.CreateOptions())
	return obj, true, err
}

// replace has a backend replace an object by what wished returns.
func (c *backendHandler) replace(ctx context.Context, req *Request, op *registry.Operation, b resource.Updater, wished change) (resource.Object, error) {
	return b.Update(ctx, &req.Request, func(old resource.Object) (resource.Object, error) {
		old, err := c.current(ctx, req, old)
		if err != nil {
			return nil, err
		}
		obj, err := wished(ctx, old)
		if err != nil {
			return nil, err
		}
		if c.own(req) {
			err = c.validate(ctx, op, obj, old)
		} else {
			err = op.CompleteUpdate(ctx, obj, old)
		}
		if err != nil {
			return nil, err
		}
		return c.in.ToBackend(ctx, c.v, obj)
	}, op.UpdateOptions())
}

// desired returns what a PUT or a PATCH asks for.
func (c *backendHandler) desired(req *Request) (change, *registry.Operation, error) {
	if req.Verb != "patch" {
		put, options, err := c.h.readUpdate(req, c.in, c.v)
		if err != nil {
			return nil, nil, err
		}
		op := c.operation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
		op.Creates = c.in.Update.Creates && req.Sub == nil
		return func(ctx context.Context, old resource.Object) (resource.Object, error) {
			obj, err := put.object()
			if err != nil {
				return nil, err
			}
			return op.PrepareUpdate(ctx, obj, old)
		}, op, nil
	}
	data, err := c.h.readBody(req)
	if err != nil {
		return nil, nil, err
	}
	t := types.PatchType(mediaType(req.HTTP))
	options, err := patchOptions(req, t)
	if err != nil {
		return nil, nil, err
	}
	op := c.operation(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	p := c.h.newPatcher(op, options.FieldValidation, data)
	if err := c.h.parsePatch(req, p, t, options); err != nil {
		return nil, nil, err
	}
	op.Applies = p.applied != nil
	op.Creates = op.Applies && req.Sub == nil
	return func(ctx context.Context, old resource.Object) (resource.Object, error) {
		obj, err := p.change(ctx, old, nil)
		switch {
		case err != nil:
			return nil, err
		case old == nil:
			return op.PrepareApplied(ctx, obj)
		}
		return op.AdmitRevision(ctx, obj, old)
	}, op, nil
}

func (c *backendHandler) delete(ctx context.Context, w *exchange.Writer, req *Request, b resource.Deleter) error {
	choice, err := negotiation.Output(req.HTTP, c.offer(req))
	if err != nil {
		return err
	}
	options, err := c.h.deleteOptions(req)
	if err != nil {
		return err
	}
	last, gone, err := c.remove(ctx, req, b, options)
	if err != nil {
		return err
	}
	if !gone || c.in.Deletion.ReturnsObject {
		return c.answer(ctx, w, req, choice, http.StatusOK, last)
	}
	raw, err := json.Marshal(last)
	if err != nil {
		return fmt.Errorf("encode the deleted object: %w", err)
	}
	c.h.sendStatus(w, req, http.StatusOK, deletionStatus(c.in, raw))
	return nil
}

// remove deletes one object.
func (c *backendHandler) remove(ctx context.Context, req *Request, b resource.Deleter, options *metav1.DeleteOptions) (last resource.Object, gone bool, err error) {
	op := c.operation(req, registry.WriteOptions{DryRun: options.DryRun})
	return b.Delete(ctx, &req.Request, func(current resource.Object) error {
		current, err := c.current(ctx, req, current)
		if err != nil {
			return err
		}
		if err := op.CheckDeletion(current, options); err != nil {
			return err
		}
		return op.AdmitDeletion(ctx, current, options)
	}, options)
}

// collectionDeleter is a backend whose objects can be deleted together.
type collectionDeleter interface {
	resource.Lister
	resource.Deleter
}

// deleteCollection deletes all selected objects, one after the other.
func (c *backendHandler) deleteCollection(ctx context.Context, w *exchange.Writer, req *Request, b collectionDeleter) error {
	choice, err := negotiation.Output(req.HTTP, c.offer(req))
	if err != nil {
		return err
	}
	list, sel, err := c.h.listOptions(req)
	if err != nil {
		return err
	}
	options, err := c.h.deleteOptions(req)
	if err != nil {
		return err
	}
	p, err := c.page(ctx, req, b, list, sel)
	if err != nil {
		return err
	}
	for _, rec := range p.Records {
		if err := ctx.Err(); err != nil {
			return err
		}
		one, m := *req, recordcache.Meta(rec)
		one.Name = m.Name
		if one.Served.Namespaced {
			one.Namespace = m.Namespace
		}
		if _, _, err := c.remove(ctx, &one, b, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.h.answerList(ctx, w, req, choice, p)
}
