// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// ServeBackend sends the events of a resource that is not stored, until its backend, the
// timeout of the watch or the client ends it. An error is the answer to the request: no
// event was sent.
func (s *Server) ServeBackend(ctx context.Context, w *exchange.Writer, req *Request, asked *resource.Request, backend resource.Watcher) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout(req.Options))
	defer cancel()
	defer context.AfterFunc(req.Served.Gone, cancel)()
	events, err := backend.Watch(ctx, asked, req.Options)
	if err != nil {
		return err
	}
	out := &writer{server: s, w: w, req: req}
	out.open()
	for event, err := range events {
		frame := watch.Frame{Type: watch.Type(event.Type)}
		if err == nil {
			frame.Record, err = s.options.Registry.TransientRecord(req.Served, req.Version, event.Object)
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
