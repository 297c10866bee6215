// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// ServeBackend sends the events of a resource that is not stored, until its backend, the
// timeout of the watch or the client ends it. An error is the answer to the request: no
// event was sent.
func (s *Server) ServeBackend(ctx context.Context, w *exchange.Writer, req *Request, asked *resource.Request, backend resource.Watcher) error {
	ctx, cancel := s.bounded(ctx, req)
	defer cancel()
	events, err := backend.Watch(ctx, asked, req.Options)
	if err != nil {
		return err
	}
	options := watch.Options{}
	if req.Options.AllowWatchBookmarks {
		options.Bookmarks = s.options.BookmarkEvery
	}
	r := &run{server: s, stream: watch.New(options), out: &writer{server: s, w: w, req: req}}
	r.connect(ctx, func(ctx context.Context) error { return r.forward(ctx, events) })
	return nil
}

// forward sends the events of a backend until the watch ends. The error is the reason.
func (r *run) forward(ctx context.Context, events iter.Seq2[resource.WatchEvent, error]) error {
	for event, err := range events {
		if err != nil {
			return stopped(ctx, err)
		}
		frame, err := r.backendFrame(&event)
		if err != nil {
			return err
		}
		frame, ok := r.stream.Forward(frame)
		if !ok {
			continue
		}
		if err := r.out.frame(ctx, frame); err != nil {
			return err
		}
		if err := r.out.flush(); err != nil {
			return err
		}
	}
	return stopped(ctx, errOver)
}

// backendFrame returns an event of a backend as a frame.
func (r *run) backendFrame(event *resource.WatchEvent) (watch.Frame, error) {
	if event.Type == kwatch.Bookmark {
		n, err := strconv.ParseInt(event.Object.GetResourceVersion(), 10, 64)
		if err != nil {
			return watch.Frame{}, apierrors.NewInternalError(fmt.Errorf("a bookmark of the backend: resourceVersion: %w", err))
		}
		return watch.Frame{
			Type: watch.Bookmark, Revision: storage.Revision(n),
			InitialEnd: event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true",
		}, nil
	}
	rec, err := r.server.options.Registry.TransientRecord(r.out.req.Served, r.out.req.Version, event.Object)
	return watch.Frame{Type: watch.Type(event.Type), Record: rec}, err
}
