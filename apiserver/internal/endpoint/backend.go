// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/encodings"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/genname"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// backendVerb returns the handler of a request that a backend answers; nil if the
// backend does not implement the verb.
func (h *Handler) backendVerb(req *Request, backend any) answerer {
	if c, ok := backend.(resource.Connecter); ok {
		return func(ctx context.Context, w *exchange.Writer, req *Request) error {
			return h.connect(ctx, w, req, c)
		}
	}
	in, v := req.Served, req.Version
	if req.Sub != nil {
		in, v = h.subresourceKind(req)
	}
	c := &backendHandler{h: h, in: in, v: v}
	switch req.Verb {
	case "get":
		if b, ok := backend.(resource.Getter); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error { return c.get(ctx, w, req, b) }
		}
	case "list":
		if b, ok := backend.(resource.Lister); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error { return c.list(ctx, w, req, b) }
		}
	case "watch":
		if b, ok := backend.(resource.Watcher); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error { return c.watch(ctx, w, req, b) }
		}
	case "create":
		if b, ok := backend.(resource.Creater); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error { return c.create(ctx, w, req, b) }
		}
	case "update", "patch":
		if b, ok := backend.(resource.Updater); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error { return c.update(ctx, w, req, b) }
		}
	case "delete":
		if b, ok := backend.(resource.Deleter); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error { return c.delete(ctx, w, req, b) }
		}
	case "deletecollection":
		if b, ok := backend.(collectionDeleter); ok {
			return func(ctx context.Context, w *exchange.Writer, req *Request) error {
				return c.deleteCollection(ctx, w, req, b)
			}
		}
	}
	return nil
}

// subresourceKind describes a subresource with a kind of its own as a resource, so that
// its bodies are decoded and encoded like those of any resource.
func (h *Handler) subresourceKind(req *Request) (*registry.Served, *resource.Version) {
	sub := req.Sub
	in, v := h.kindBelow(req, resource.Version{Name: sub.Kind.Version, New: sub.New, Strategy: sub.Strategy, Ownership: sub.Ownership}, sub.Kind)
	in.EquivalentVersions = sub.EquivalentVersions
	return in, v
}

// kindBelow describes a kind of a subresource as a resource.
func (h *Handler) kindBelow(req *Request, v resource.Version, kind schema.GroupVersionKind) (*registry.Served, *resource.Version) {
	if v.Strategy == nil {
		v.Strategy = noRules{}
	}
	parent := req.Resource
	of := &resource.Resource{
		Names: resource.Names{
			Group: kind.Group, Plural: parent.Plural, Singular: parent.Singular,
			Kind: kind.Kind, ListKind: kind.Kind + "List", Namespaced: parent.Namespaced,
		},
		Versions: []resource.Version{v},
		Storage:  resource.Storage{Version: v.Name},
		Backend:  req.Sub.Backend,
	}
	return h.registry.Serve(of), &of.Versions[0]
}

// backendHandler answers the verbs of a backend. Negotiation, decoding, admission and
// encoding are the same as for stored resources.
type backendHandler struct {
	h  *Handler
	in *registry.Served
	v  *resource.Version
}

func (c *backendHandler) offer() negotiate.Offer {
	_, gets := c.in.Backend.(resource.Getter)
	_, lists := c.in.Backend.(resource.Lister)
	return negotiate.Offer{Protobuf: c.v.Protobuf(), Shapes: true, NoTable: !gets && !lists}
}

func (c *backendHandler) answer(ctx context.Context, w *exchange.Writer, req *Request, choice negotiate.Choice, code int, obj resource.Object) error {
	rec, err := c.h.registry.TransientRecord(c.in, c.v, obj)
	if err != nil {
		return err
	}
	return c.h.answerRecord(ctx, w, req, choice, code, c.in, c.v, rec)
}

func (c *backendHandler) get(ctx context.Context, w *exchange.Writer, req *Request, b resource.Getter) error {
	choice, err := negotiate.Output(req.HTTP, c.offer())
	if err != nil {
		return err
	}
	obj, err := b.Get(ctx, &req.Request)
	if err != nil {
		return err
	}
	return c.answer(ctx, w, req, choice, http.StatusOK, obj)
}

func (c *backendHandler) list(ctx context.Context, w *exchange.Writer, req *Request, b resource.Lister) error {
	choice, err := negotiate.Output(req.HTTP, c.offer())
	if err != nil {
		return err
	}
	options, sel, err := c.h.listOptions(req)
	if err != nil {
		return err
	}
	p, err := c.page(ctx, req, b, options, sel)
	if err != nil {
		return err
	}
	return c.h.answerList(ctx, w, req, choice, p)
}

// page returns the selected objects of a backend.
func (c *backendHandler) page(ctx context.Context, req *Request, b resource.Lister, options *internalversion.ListOptions, sel *registry.Selection) (*registry.Page, error) {
	list, err := b.List(ctx, &req.Request, options)
	if err != nil {
		return nil, err
	}
	p := &registry.Page{Continue: list.Continue, Remaining: list.RemainingItemCount}
	if n, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err == nil {
		p.Revision = storage.Revision(n)
	}
	for _, obj := range list.Items {
		rec, err := c.h.registry.TransientRecord(c.in, c.v, obj)
		if err != nil {
			return nil, err
		}
		selected, err := sel.Matches(ctx, rec)
		if err != nil {
			return nil, err
		}
		if selected {
			p.Records = append(p.Records, rec)
		}
	}
	return p, nil
}

func (c *backendHandler) watch(ctx context.Context, w *exchange.Writer, req *Request, b resource.Watcher) error {
	choice, err := negotiate.Output(req.HTTP, req.offer())
	if err != nil {
		return err
	}
	options, sel, err := c.h.listOptions(req)
	if err != nil {
		return err
	}
	watch, err := c.h.newWatch(req, choice, options, sel)
	if err != nil {
		return err
	}
	return c.h.watches.ServeBackend(ctx, w, watch, &req.Request, b)
}

func (c *backendHandler) create(ctx context.Context, w *exchange.Writer, req *Request, b resource.Creater) error {
	choice, err := negotiate.Output(req.HTTP, c.offer())
	if err != nil {
		return err
	}
	obj, options, err := c.h.readCreate(req, c.in, c.v)
	if err != nil {
		return err
	}
	if err := registry.EnsureNamespace(&req.Request, c.in, obj); err != nil {
		return err
	}
	wr := c.write(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	if req.Sub == nil {
		if obj, err = wr.PrepareCreate(ctx, obj); err != nil {
			return err
		}
	} else if obj, err = wr.PrepareAnswer(ctx, obj); err != nil {
		return err
	}
	err = genname.Try(obj, func(candidate resource.Object) (taken bool, err error) {
		obj, err = c.createOne(ctx, req, wr, b, candidate, options)
		return apierrors.IsAlreadyExists(err), err
	})
	if err != nil {
		return err
	}
	if obj == nil {
		exchange.SendStatus(w, req.HTTP, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
		return nil
	}
	return c.answer(ctx, w, req, choice, http.StatusCreated, obj)
}

// createOne has a backend create an object. One that can be read afterwards gets a name, a
// uid and a time; the others are questions, which have none.
func (c *backendHandler) createOne(ctx context.Context, req *Request, wr *registry.Write, b resource.Creater, obj resource.Object, options *metav1.CreateOptions) (resource.Object, error) {
	validate := wr.ValidateNew
	if _, kept := b.(resource.Getter); kept && req.Sub == nil {
		wr.Identify(obj)
	} else {
		validate = func(ctx context.Context, obj resource.Object) field.ErrorList {
			return wr.Strategy.Validate(ctx, obj, nil)
		}
	}
	wr.Strategy.Prepare(ctx, obj, nil)
	if errs := validate(ctx, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.in.GroupKind(obj), obj.GetName(), errs)
	}
	for _, text := range wr.Strategy.Warnings(ctx, obj, nil) {
		req.Warn(text)
	}
	if err := wr.Validate(ctx, obj, nil); err != nil {
		return nil, err
	}
	resource.DecodeObject(obj) // a backend may copy it
	return b.Create(ctx, &req.Request, obj, options)
}

func (c *backendHandler) write(req *Request, o registry.WriteOptions) *registry.Write {
	wr := c.h.newWrite(req, o)
	wr.Served, wr.Version, wr.Strategy, wr.Ownership = c.in, c.v, c.v.Strategy, c.v.Ownership
	return wr
}

// update answers PUT and PATCH.
func (c *backendHandler) update(ctx context.Context, w *exchange.Writer, req *Request, b resource.Updater) error {
	choice, err := negotiate.Output(req.HTTP, c.offer())
	if err != nil {
		return err
	}
	wished, wr, err := c.desired(req)
	if err != nil {
		return err
	}
	obj, err := b.Update(ctx, &req.Request, func(old resource.Object) (resource.Object, error) {
		old, err := registry.InForm(c.in, c.v, old)
		if err != nil {
			return nil, err
		}
		obj, err := wished(ctx, old)
		if err != nil {
			return nil, err
		}
		if obj, err = wr.Admit(ctx, obj, old); err != nil {
			return nil, err
		}
		wr.Strategy.Prepare(ctx, obj, old)
		if errs := wr.Strategy.Validate(ctx, obj, old); len(errs) > 0 {
			return nil, apierrors.NewInvalid(c.in.GroupKind(obj), obj.GetName(), errs)
		}
		err = wr.Validate(ctx, obj, old)
		resource.DecodeObject(obj)
		return obj, err
	}, wr.UpdateOptions())
	if err != nil {
		return err
	}
	return c.answer(ctx, w, req, choice, http.StatusOK, obj)
}

// desired returns the function that turns the current object into the one that a PUT or
// a PATCH asks for.
func (c *backendHandler) desired(req *Request) (func(ctx context.Context, old resource.Object) (resource.Object, error), *registry.Write, error) {
	if req.Verb != "patch" {
		put, options, err := c.h.readUpdate(req, c.in, c.v)
		if err != nil {
			return nil, nil, err
		}
		wr := c.write(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
		return func(ctx context.Context, old resource.Object) (resource.Object, error) {
			obj, err := put.object()
			if err != nil {
				return nil, err
			}
			return wr.UpdateManagedFields(ctx, old, obj)
		}, wr, nil
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
	wr := c.write(req, writeOptions(options.DryRun, options.FieldManager, options.FieldValidation))
	p := c.h.newPatcher(wr, options.FieldValidation, data)
	if err := p.parse(t, options); err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, old resource.Object) (resource.Object, error) {
		return p.change(ctx, old, nil)
	}, wr, nil
}

func (c *backendHandler) delete(ctx context.Context, w *exchange.Writer, req *Request, b resource.Deleter) error {
	choice, err := negotiate.Output(req.HTTP, c.offer())
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
	exchange.SendStatus(w, req.HTTP, http.StatusOK, deletionStatus(c.in, raw))
	return nil
}

// remove deletes one object.
func (c *backendHandler) remove(ctx context.Context, req *Request, b resource.Deleter, options *metav1.DeleteOptions) (last resource.Object, gone bool, err error) {
	wr := c.write(req, registry.WriteOptions{DryRun: options.DryRun})
	return b.Delete(ctx, &req.Request, func(current resource.Object) error {
		current, err := registry.InForm(c.in, c.v, current)
		if err != nil {
			return err
		}
		return wr.AdmitDeletion(ctx, current, options)
	}, options)
}

// collectionDeleter is a backend whose objects can be deleted together.
type collectionDeleter interface {
	resource.Lister
	resource.Deleter
}

// deleteCollection deletes all selected objects, one after the other.
func (c *backendHandler) deleteCollection(ctx context.Context, w *exchange.Writer, req *Request, b collectionDeleter) error {
	choice, err := negotiate.Output(req.HTTP, c.offer())
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
		one, m := *req, encodings.Meta(rec)
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
