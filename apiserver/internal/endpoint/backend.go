// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// backendVerb returns the handler of a request that a backend answers; nil if the
// backend does not implement the verb.
func (h *Handler) backendVerb(req *Request, backend any) answerer {
	if c, ok := backend.(resource.Connecter); ok {
		if restricted := req.Sub != nil && req.Sub.Verbs != nil; !restricted && !slices.Contains(resource.BackendVerbs(backend), req.Verb) {
			return nil
		}
		return func(ctx context.Context, w *exchange.Writer, req *Request) error {
			return h.connect(ctx, w, req, c)
		}
	}
	c := &backendHandler{h: h, in: req.Served, v: req.Version}
	if req.Sub != nil && req.Sub.Backend != nil {
		c.in, c.v = h.subresourceKind(req)
	}
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
	in, v := h.kindBelow(req, resource.Version{Name: sub.Kind.Version, New: sub.New, Strategy: sub.Strategy, FieldManager: sub.FieldManager}, sub.Kind)
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

// backendHandler answers the verbs of a backend. All but the storing is the same as for
// stored resources: negotiation, decoding, admission, metadata, conversion and encoding.
type backendHandler struct {
	h *Handler
	// in and v are the kind of the objects: that of the resource, or of a subresource with
	// a backend of its own.
	in *registry.Served
	v  *resource.Version
}

// own reports whether the objects are those of a subresource with a backend of its own.
// Their metadata is the backend's.
func (c *backendHandler) own(req *Request) bool { return c.in != req.Served }

func (c *backendHandler) offer(req *Request) negotiation.Offer {
	_, gets := c.in.Backend.(resource.Getter)
	_, lists := c.in.Backend.(resource.Lister)
	if !c.own(req) && req.Sub != nil {
		return req.answerOffer()
	}
	return negotiation.Offer{Protobuf: c.v.Protobuf(), Shapes: true, NoTable: !gets && !lists}
}

func (c *backendHandler) answer(ctx context.Context, w *exchange.Writer, req *Request, choice negotiation.Choice, code int, obj resource.Object) error {
	recs, err := c.h.registry.RecordsFromBackend(ctx, c.in, c.v, obj)
	if err != nil {
		return err
	}
	return c.h.answerRecord(ctx, w, req, choice, code, c.in, c.v, recs[0])
}

// current returns an object of the backend in the version of the request, and a 404 for one
// of another namespace.
func (c *backendHandler) current(ctx context.Context, req *Request, obj resource.Object) (resource.Object, error) {
	if namespace := obj.GetNamespace(); c.in.Namespaced && namespace != "" && namespace != req.Namespace {
		return nil, apierrors.NewNotFound(c.in.GroupResource(), req.Name)
	}
	shown, err := c.in.FromBackend(ctx, c.v, []resource.Object{obj})
	if err != nil {
		return nil, err
	}
	return shown[0], nil
}

func (c *backendHandler) get(ctx context.Context, w *exchange.Writer, req *Request, b resource.Getter) error {
	choice, err := negotiation.Output(req.HTTP, c.offer(req))
	if err != nil {
		return err
	}
	obj, err := b.Get(ctx, &req.Request)
	if err != nil {
		return err
	}
	if obj, err = c.current(ctx, req, obj); err != nil {
		return err
	}
	if req.Sub != nil && req.Sub.Scale != nil {
		scale, err := registry.Scale(req.Sub.Scale, obj)
		if err != nil {
			return err
		}
		return c.h.answerScale(ctx, w, req, choice, scale)
	}
	return c.answer(ctx, w, req, choice, http.StatusOK, obj)
}

func (c *backendHandler) list(ctx context.Context, w *exchange.Writer, req *Request, b resource.Lister) error {
	choice, err := negotiation.Output(req.HTTP, c.offer(req))
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
	if list.ResourceVersion != "" {
		n, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("a list of the backend: resourceVersion: %w", err))
		}
		p.Revision = storage.Revision(n)
	}
	var items []resource.Object
	for _, obj := range list.Items {
		if sel.InNamespace(obj.GetNamespace()) {
			items = append(items, obj)
		}
	}
	recs, err := c.h.registry.RecordsFromBackend(ctx, c.in, c.v, items...)
	if err != nil {
		return nil, err
	}
	for _, rec := range recs {
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
	choice, err := negotiation.Output(req.HTTP, req.offer())
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
	if watch.Present, err = c.present(ctx, req, b, options, sel); err != nil {
		return err
	}
	return c.h.watches.ServeBackend(ctx, w, watch, &req.Request, b)
}

// present returns the list that a watch begins with; nil if the watch begins at a revision, or
// if the backend lists without one and has to begin the watch itself.
func (c *backendHandler) present(ctx context.Context, req *Request, b resource.Watcher, o *internalversion.ListOptions, sel *registry.Selection) (*registry.Page, error) {
	// The option is also set as the default of watches without a revision.
	asked := o.SendInitialEvents != nil && *o.SendInitialEvents && req.Query().Has("sendInitialEvents")
	if !asked && o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return nil, nil // the backend has what follows the revision
	}
	if lister, ok := b.(resource.Lister); ok {
		list := &internalversion.ListOptions{
			LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector,
			ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
		}
		if list.ResourceVersion == "" {
			list.ResourceVersionMatch = ""
		}
		p, err := c.page(ctx, req, lister, list, sel)
		if err != nil || p.Revision > 0 {
			return p, err
		}
	}
	if asked {
		return nil, invalidOptions("ListOptions", field.ErrorList{field.Forbidden(field.NewPath("sendInitialEvents"), "lists of this resource have no resourceVersion to watch from")})
	}
	return nil, nil // as the contract of this function has it
}
