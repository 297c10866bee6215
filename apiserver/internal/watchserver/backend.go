// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// ServeBackend sends the present objects of a resource that is not stored, and then the
// events of its backend, until that, the timeout of the watch or the client ends it. An error
// is the answer to the request: no event was sent.
func (s *Server) ServeBackend(ctx context.Context, w *exchange.Writer, req *Request, asked *resource.Request, backend resource.Watcher) error {
	ctx, cancel := s.bounded(ctx, req)
	defer cancel()
	options := *req.Options
	if req.Present != nil {
		options.ResourceVersion = strconv.FormatInt(int64(req.Present.Revision), 10)
	}
	options.SendInitialEvents, options.ResourceVersionMatch = nil, ""
	events, err := backend.Watch(ctx, asked, &options)
	if err != nil {
		return err
	}
	stream := watch.Options{}
	if req.Options.AllowWatchBookmarks {
		stream.Bookmarks = s.options.BookmarkEvery
	}
	r := &run{server: s, sel: req.Selection, stream: watch.New(stream), out: &writer{server: s, w: w, req: req}}
	r.connect(ctx, func(ctx context.Context) error { return r.forward(ctx, events) })
	return nil
}

// forward sends the present objects and the events of a backend until the watch ends. The
// error is the reason.
func (r *run) forward(ctx context.Context, events iter.Seq2[resource.WatchEvent, error]) error {
	if err := r.present(ctx); err != nil {
		return err
	}
	for event, err := range events {
		if err != nil {
			return stopped(ctx, err)
		}
		frame, ok, err := r.backendFrame(ctx, &event)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := r.pass(ctx, frame); err != nil {
			return err
		}
		if err := r.out.flush(); err != nil {
			return err
		}
	}
	return stopped(ctx, errOver)
}

// present sends the objects that the watch begins with.
func (r *run) present(ctx context.Context) error {
	page := r.out.req.Present
	objects, end := initial(r.out.req.Options)
	if page == nil || !objects {
		return nil
	}
	for _, rec := range page.Records {
		if err := r.pass(ctx, watch.Frame{Type: watch.Added, Record: rec}); err != nil {
			return err
		}
	}
	if end {
		if err := r.pass(ctx, watch.Frame{Type: watch.Bookmark, Revision: page.Revision, InitialEnd: true}); err != nil {
			return err
		}
	}
	return r.out.flush()
}

// pass sends a frame, if it is one that the client asks for.
func (r *run) pass(ctx context.Context, frame watch.Frame) error {
	frame, ok := r.stream.Forward(frame)
	if !ok {
		return nil
	}
	return r.out.frame(ctx, frame)
}

// backendFrame returns the frame to send for an event of a backend; ok is false if there is
// none: the event is of an object that is not selected.
func (r *run) backendFrame(ctx context.Context, event *resource.WatchEvent) (f watch.Frame, ok bool, err error) {
	if event.Type == kwatch.Bookmark {
		revision, err := revisionOf("a bookmark", event.Object)
		return watch.Frame{Type: watch.Bookmark, Revision: revision}, err == nil, err
	}
	if !r.sel.InNamespace(event.Object.GetNamespace()) {
		return watch.Frame{}, false, nil
	}
	rec, is, err := r.shown(ctx, event.Object)
	if err != nil {
		return watch.Frame{}, false, err
	}
	if event.Type != kwatch.Modified || is && event.Previous == nil {
		return watch.Frame{Type: watch.Type(event.Type), Record: rec}, is, nil
	}
	last, was := rec, true // without the previous state, the object may have been selected
	if event.Previous != nil {
		if last, was, err = r.shown(ctx, event.Previous); err != nil {
			return watch.Frame{}, false, err
		}
	}
	switch {
	case is && was:
		return watch.Frame{Type: watch.Modified, Record: rec}, true, nil
	case is:
		return watch.Frame{Type: watch.Added, Record: rec}, true, nil
	case was:
		revision, err := revisionOf("an event", event.Object)
		return watch.Frame{Type: watch.Deleted, Record: last, Revision: revision}, err == nil, err
	}
	return watch.Frame{}, false, nil
}

// shown returns an object of a backend as a record, and whether it is selected.
func (r *run) shown(ctx context.Context, obj resource.Object) (rec *storage.Record, selected bool, err error) {
	recs, err := r.server.options.Registry.RecordsFromBackend(ctx, r.out.req.Served, r.out.req.Version, obj)
	if err != nil {
		return nil, false, err
	}
	selected, err = r.sel.Matches(ctx, recs[0])
	return recs[0], selected, err
}

// revisionOf returns the revision of an object of a backend.
func revisionOf(what string, obj resource.Object) (storage.Revision, error) {
	n, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, apierrors.NewInternalError(fmt.Errorf("%s of the backend: resourceVersion: %w", what, err))
	}
	return storage.Revision(n), nil
}
