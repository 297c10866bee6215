// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/storage"
)

// freshFor is how long a read waits for a revision that is not there yet.
const freshFor = 3 * time.Second

func (r *request) offer() negotiate.Offer {
	return negotiate.Offer{Protobuf: r.Version.Typed(), Shapes: true, Stream: r.Verb == "watch"}
}

// negotiate chooses the form of the answer.
func (r *request) negotiate(offer negotiate.Offer) (negotiate.Choice, error) {
	choice, err := negotiate.Output(r.http, offer)
	if err != nil && r.Version.Typed() {
		types := strings.Join(negotiate.Accepted(negotiate.Offer{}), ", ") + ", " + strings.Join(negotiate.Accepted(negotiate.Offer{Stream: true}), ", ")
		return choice, generic(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+types)
	}
	return choice, err
}

// get answers one object, or one of its subresources.
func (s *Server) get(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.answerOffer())
	if err != nil {
		return err
	}
	var options metav1.GetOptions
	if req.http.URL.RawQuery != "" {
		if err := parameters(req, &options); err != nil {
			return err
		}
	}
	at, err := parseRevision(options.ResourceVersion)
	if err != nil {
		return err // a 500, as clients have always been told
	}
	view, err := s.fresh(ctx, at)
	if err != nil {
		return err
	}
	rec := view.Get(req.in.Key(req.Namespace, req.Name))
	if rec == nil {
		return apierrors.NewNotFound(req.groupResource(), req.Name)
	}
	if req.sub != nil && req.sub.Scale != nil {
		obj, err := s.object(ctx, req.in, req.Version, rec)
		if err != nil {
			return err
		}
		return s.answerScale(ctx, w, req, choice, 200, obj)
	}
	return s.answerRecord(ctx, w, req, choice, 200, req.in, req.Version, rec)
}

// fresh returns the newest view, waiting until it has reached a revision.
func (s *Server) fresh(ctx context.Context, atLeast storage.Revision) (storage.View, error) {
	view, err := s.store.View(ctx, 0)
	if err != nil || view.Revision() >= atLeast {
		return view, err
	}
	wait, cancel := context.WithTimeout(ctx, freshFor)
	defer cancel()
	cursor, err := s.store.Watch(storage.Range{}, view.Revision())
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for {
		batch, err := cursor.Next(wait)
		switch {
		case err == nil && batch.Revision >= atLeast:
			return s.store.View(ctx, 0)
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil, s.tooLarge(ctx, atLeast)
		default:
			return nil, err
		}
	}
}

// tooLarge is the 504 for a revision that does not exist yet.
func (s *Server) tooLarge(ctx context.Context, asked storage.Revision) error {
	var current storage.Revision
	if view, err := s.store.View(ctx, 0); err == nil {
		current = view.Revision()
	}
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// page is one answer to a list.
type page struct {
	records   []*storage.Record
	revision  storage.Revision
	token     string
	remaining *int64
}

// list answers the objects of a collection.
func (s *Server) list(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, sel, err := listOptions(req)
	if err != nil {
		return err
	}
	sel.s = s
	p, err := s.readPage(ctx, sel, options)
	if err != nil {
		return err
	}
	return s.answerList(ctx, w, req, choice, p)
}

// readPage reads what a list asks for.
func (s *Server) readPage(ctx context.Context, sel *selection, options *internalversion.ListOptions) (*page, error) {
	view, start, limit, err := s.viewFor(ctx, sel, options)
	if err != nil {
		return nil, err
	}
	p := &page{revision: view.Revision()}
	if key, ok := sel.key(); ok {
		if rec := view.Get(key); rec != nil && rec.Key.Name >= sel.prefix()+start && sel.matches(rec) {
			p.records = append(p.records, rec)
		}
		return p, nil
	}
	if sel.everything() && limit == 0 {
		p.records = make([]*storage.Record, 0, view.Count(sel.in.Storage.Bucket, sel.prefix(), start))
	}
	for rec := range view.Ascend(sel.in.Storage.Bucket, sel.prefix(), sel.prefix()+start) {
		if limit > 0 && int64(len(p.records)) == limit {
			last := p.records[len(p.records)-1].Key.Name
			next := last[len(sel.prefix()):] + "\x00"
			p.token = continuation{Revision: int64(view.Revision()), Start: next}.encode()
			if sel.everything() {
				remaining := int64(view.Count(sel.in.Storage.Bucket, sel.prefix(), sel.prefix()+next))
				p.remaining = &remaining
			}
			break
		}
		if sel.matches(rec) {
			p.records = append(p.records, rec)
		}
	}
	return p, nil
}

// viewFor finds the snapshot that a list is to be read from, where in it to
// start, and how many to read.
func (s *Server) viewFor(ctx context.Context, sel *selection, o *internalversion.ListOptions) (view storage.View, start string, limit int64, err error) {
	limit = o.Limit
	if o.Continue != "" {
		if o.ResourceVersion != "" && o.ResourceVersion != "0" {
			return nil, "", 0, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		token, err := decodeContinuation(o.Continue)
		if err != nil {
			return nil, "", 0, err
		}
		at := storage.Revision(token.Revision)
		if token.Revision < 0 {
			at = 0
		}
		view, err = s.exactly(ctx, at, token.Start)
		return view, token.Start, limit, err
	}
	at, err := parseRevision(o.ResourceVersion)
	if err != nil {
		return nil, "", 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && limit > 0 && at > 0
	if exact {
		view, err = s.exactly(ctx, at, "")
		return view, "", limit, err
	}
	if o.ResourceVersion == "0" {
		limit = 0 // "any revision" has always been answered in one piece
	}
	view, err = s.fresh(ctx, at)
	return view, "", limit, err
}

// exactly returns the view at a revision; start is that of a continued list.
func (s *Server) exactly(ctx context.Context, at storage.Revision, start string) (storage.View, error) {
	view, err := s.store.View(ctx, at)
	switch {
	case isExpired(err):
		return nil, expiredList(start)
	case errors.Is(err, storage.ErrFuture):
		return nil, s.tooLarge(ctx, at)
	}
	return view, err
}
