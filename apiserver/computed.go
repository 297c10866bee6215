// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// computed returns the handler of a request that a backend answers; nil when it
// does not have the verb.
func (s *Server) computed(req *request, backend any) answerer {
	if c, ok := backend.(resource.Connecter); ok {
		return func(ctx context.Context, w *exchange.Writer, req *request) error {
			return s.connect(ctx, w, req, c)
		}
	}
	in, v := req.in, req.Version
	if req.sub != nil {
		in, v = req.described()
	}
	c := &computing{s: s, in: in, v: v}
	switch req.Verb {
	case "get":
		if b, ok := backend.(resource.Getter); ok {
			return func(ctx context.Context, w *exchange.Writer, req *request) error { return c.get(ctx, w, req, b) }
		}
	case "list":
		if b, ok := backend.(resource.Lister); ok {
			return func(ctx context.Context, w *exchange.Writer, req *request) error { return c.list(ctx, w, req, b) }
		}
	case "watch":
		if b, ok := backend.(resource.Watcher); ok {
			return func(ctx context.Context, w *exchange.Writer, req *request) error { return c.watch(ctx, w, req, b) }
		}
	case "create":
		if b, ok := backend.(resource.Creater); ok {
			return func(ctx context.Context, w *exchange.Writer, req *request) error { return c.create(ctx, w, req, b) }
		}
	case "update", "patch":
		if b, ok := backend.(resource.Updater); ok {
			return func(ctx context.Context, w *exchange.Writer, req *request) error { return c.update(ctx, w, req, b) }
		}
	case "delete":
		if b, ok := backend.(resource.Deleter); ok {
			return func(ctx context.Context, w *exchange.Writer, req *request) error { return c.delete(ctx, w, req, b) }
		}
	}
	return nil
}

// described is a subresource of its own kind in the form of a resource.
func (r *request) described() (*installed, *resource.Version) {
	sub := r.sub
	of := &resource.Resource{
		Names: resource.Names{
			Group: sub.Kind.Group, Plural: r.Resource.Plural, Singular: r.Resource.Singular,
			Kind: sub.Kind.Kind, ListKind: sub.Kind.Kind + "List", Namespaced: r.Resource.Namespaced,
		},
		Versions: []resource.Version{{Name: sub.Kind.Version, New: sub.New, Strategy: sub.Strategy, Ownership: sub.Ownership}},
		Storage:  resource.Storage{Version: sub.Kind.Version},
		Backend:  sub.Backend,
	}
	if of.Versions[0].Strategy == nil {
		of.Versions[0].Strategy = anything{}
	}
	return &installed{Resource: of, versions: map[string]*resource.Version{sub.Kind.Version: &of.Versions[0]}, alike: sub.Alike}, &of.Versions[0]
}

// computing answers the verbs of a backend: everything around the backend is as
// with the store.
type computing struct {
	s  *Server
	in *installed
	v  *resource.Version
}

func (c *computing) offer() negotiate.Offer {
	return negotiate.Offer{Protobuf: c.v.Typed(), Shapes: true}
}

func (s *Server) connect(ctx context.Context, w *exchange.Writer, req *request, c resource.Connecter) error {
	if a := s.options.Admission; a != nil {
		ar := &resource.AdmissionRequest{Request: &req.Request, Operation: resource.Connect}
		if err := a.Admit(ctx, ar); err != nil {
			return err
		}
		if err := a.Validate(ctx, ar); err != nil {
			return err
		}
	}
	c.Connect(ctx, &req.Request, w, req.http.WithContext(ctx))
	return nil
}

func (c *computing) answer(ctx context.Context, w *exchange.Writer, req *request, choice negotiate.Choice, code int, obj resource.Object) error {
	rec, err := c.s.transient(c.in, c.v, obj)
	if err != nil {
		return err
	}
	return c.s.answerRecord(ctx, w, req, choice, code, c.in, c.v, rec)
}

func (c *computing) get(ctx context.Context, w *exchange.Writer, req *request, b resource.Getter) error {
	choice, err := negotiate.Output(req.http, c.offer())
	if err != nil {
		return err
	}
	obj, err := b.Get(ctx, &req.Request)
	if err != nil {
		return err
	}
	return c.answer(ctx, w, req, choice, http.StatusOK, obj)
}

func (c *computing) list(ctx context.Context, w *exchange.Writer, req *request, b resource.Lister) error {
	choice, err := negotiate.Output(req.http, c.offer())
	if err != nil {
		return err
	}
	options, sel, err := listOptions(req)
	if err != nil {
		return err
	}
	sel.s = c.s
	list, err := b.List(ctx, &req.Request, options)
	if err != nil {
		return err
	}
	p := &page{token: list.Continue, remaining: list.RemainingItemCount}
	if n, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err == nil {
		p.revision = storage.Revision(n)
	}
	for _, obj := range list.Items {
		rec, err := c.s.transient(c.in, c.v, obj)
		if err != nil {
			return err
		}
		if sel.matches(rec) {
			p.records = append(p.records, rec)
		}
	}
	return c.s.answerList(ctx, w, req, choice, p)
}

func (c *computing) watch(ctx context.Context, w *exchange.Writer, req *request, b resource.Watcher) error {
	choice, err := negotiate.Output(req.http, req.offer())
	if err != nil {
		return err
	}
	options, _, err := listOptions(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.life(options))
	defer cancel()
	defer context.AfterFunc(req.in.gone, cancel)()
	events, err := b.Watch(ctx, &req.Request, options)
	if err != nil {
		return err
	}
	out := &watchWriter{s: c.s, w: w, req: req, choice: choice, printer: c.v.Printer, metrics: c.s.metrics.watch(req)}
	if out.printer == nil {
		out.printer = table.Default()
	}
	if err := out.open(); err != nil {
		return nil
	}
	for event, err := range events {
		frame := watch.Frame{Type: watch.Type(event.Type)}
		if err == nil {
			frame.Record, err = c.s.transient(c.in, c.v, event.Object)
		}
		if err != nil {
			frame = watch.Frame{Type: watch.Error, Err: err}
		}
		if frame.Type == watch.Bookmark {
			n, _ := strconv.ParseInt(event.Object.GetResourceVersion(), 10, 64)
			frame = watch.Frame{Type: watch.Bookmark, Revision: storage.Revision(n),
				InitialEnd: event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"}
		}
		if out.frame(ctx, frame) != nil || out.flush() != nil || err != nil {
			return nil
		}
	}
	return nil
}

func (c *computing) create(ctx context.Context, w *exchange.Writer, req *request, b resource.Creater) error {
	choice, err := negotiate.Output(req.http, c.offer())
	if err != nil {
		return err
	}
	media, err := negotiate.Input(req.http.Header.Get("Content-Type"), c.offer())
	if err != nil {
		return err
	}
	data, err := c.s.readBody(req)
	if err != nil {
		return err
	}
	options, err := createOptions(req)
	if err != nil {
		return err
	}
	d := c.s.decoder(c.in, c.v, options.FieldValidation)
	obj, err := d.body(req, media, data)
	if err != nil {
		return err
	}
	if err := settleNamespace(req, c.in, obj); err != nil {
		return err
	}
	wr := c.write(req, options.DryRun, options.FieldManager, options.FieldValidation)
	if req.sub == nil {
		if obj, err = wr.prepareCreate(ctx, obj); err != nil {
			return err
		}
	} else if obj, err = wr.prepareAnswer(ctx, obj); err != nil {
		return err
	}
	wr.strategy.Prepare(ctx, obj, nil)
	if errs := wr.strategy.Validate(ctx, obj, nil); len(errs) > 0 {
		return apierrors.NewInvalid(c.in.groupKind(obj), obj.GetName(), errs)
	}
	for _, text := range wr.strategy.Warnings(ctx, obj, nil) {
		req.Warn(text)
	}
	if err := wr.validated(ctx, obj, nil); err != nil {
		return err
	}
	if obj, err = b.Create(ctx, &req.Request, obj, options); err != nil {
		return err
	}
	if obj == nil {
		exchange.SendStatus(w, req.http, http.StatusCreated, &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
		return nil
	}
	return c.answer(ctx, w, req, choice, http.StatusCreated, obj)
}

// prepareAnswer is prepareCreate for what is posted to a subresource: its metadata
// is for the backend to judge.
func (wr *write) prepareAnswer(ctx context.Context, obj resource.Object) (resource.Object, error) {
	empty := wr.v.NewObject()
	empty.GetObjectKind().SetGroupVersionKind(wr.in.GroupVersionKind(wr.v.Name))
	obj, err := wr.own(empty, obj)
	if err != nil {
		return nil, err
	}
	return wr.admit(ctx, obj, nil)
}

func (c *computing) write(req *request, dryRun []string, fieldManager, fieldValidation string) *write {
	wr := c.s.newWrite(req, dryRun, fieldManager, fieldValidation)
	wr.in, wr.v, wr.strategy, wr.ownership = c.in, c.v, c.v.Strategy, c.v.Ownership
	return wr
}

// update answers PUT and PATCH.
func (c *computing) update(ctx context.Context, w *exchange.Writer, req *request, b resource.Updater) error {
	choice, err := negotiate.Output(req.http, c.offer())
	if err != nil {
		return err
	}
	data, err := c.s.readBody(req)
	if err != nil {
		return err
	}
	var wr *write
	var options *metav1.UpdateOptions
	var wished func(ctx context.Context, old resource.Object) (resource.Object, error)
	if req.Verb == "patch" {
		t := types.PatchType(mediaType(req.http))
		o, err := patchOptions(req, t)
		if err != nil {
			return err
		}
		wr = c.write(req, o.DryRun, o.FieldManager, o.FieldValidation)
		options = wr.updateOptions
		p := &patching{wr: wr, kind: c.in.GroupVersionKind(c.v.Name), v: c.v, strategy: wr.strategy, ownership: wr.ownership, directive: directive(o.FieldValidation), body: data}
		if err := p.parse(t, o); err != nil {
			return err
		}
		wished = func(ctx context.Context, old resource.Object) (resource.Object, error) {
			return p.change(ctx, old, nil)
		}
	} else {
		if options, err = updateOptions(req); err != nil {
			return err
		}
		media, err := negotiate.Input(req.http.Header.Get("Content-Type"), c.offer())
		if err != nil {
			return err
		}
		d := c.s.decoder(c.in, c.v, options.FieldValidation)
		obj, err := d.body(req, media, data)
		if err != nil {
			return err
		}
		if err := settleNamespace(req, c.in, obj); err != nil {
			return err
		}
		if err := checkName(req, obj); err != nil {
			return err
		}
		wr = c.write(req, options.DryRun, options.FieldManager, options.FieldValidation)
		wished = func(_ context.Context, old resource.Object) (resource.Object, error) {
			return wr.own(old, obj.DeepCopyObject().(resource.Object))
		}
	}
	obj, err := b.Update(ctx, &req.Request, func(old resource.Object) (resource.Object, error) {
		obj, err := wished(ctx, old)
		if err != nil {
			return nil, err
		}
		if obj, err = wr.admit(ctx, obj, old); err != nil {
			return nil, err
		}
		wr.strategy.Prepare(ctx, obj, old)
		if errs := wr.strategy.Validate(ctx, obj, old); len(errs) > 0 {
			return nil, apierrors.NewInvalid(c.in.groupKind(obj), obj.GetName(), errs)
		}
		return obj, wr.validated(ctx, obj, old)
	}, options)
	if err != nil {
		return err
	}
	return c.answer(ctx, w, req, choice, http.StatusOK, obj)
}

func (c *computing) delete(ctx context.Context, w *exchange.Writer, req *request, b resource.Deleter) error {
	choice, err := negotiate.Output(req.http, c.offer())
	if err != nil {
		return err
	}
	options, err := c.s.deleteOptions(req)
	if err != nil {
		return err
	}
	last, gone, err := b.Delete(ctx, &req.Request, options)
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
	exchange.SendStatus(w, req.http, http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: wire.String(raw, "metadata", "name"), Group: c.in.Group, Kind: c.in.Plural, UID: types.UID(wire.String(raw, "metadata", "uid")),
	}})
	return nil
}
