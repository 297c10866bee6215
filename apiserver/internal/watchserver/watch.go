// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// Serve sends the changes of a collection until the timeout of the watch ends, the
// client disconnects, the resource is replaced or the server stops. An error is the
// answer to the request: no event was sent.
func (s *Server) Serve(ctx context.Context, w *exchange.Writer, req *Request) (err error) {
	sel, options, after := req.Selection, req.Options, req.After
	run := &run{server: s, sel: sel, out: &writer{server: s, w: w, req: req}, replaced: req.Served.Gone}
	stream := watch.Options{Matches: sel.Matches, After: after}
	if req.Served.RemoteConversion {
		run.out.converted = map[*storage.Record]*storage.Record{}
		stream.Matches = func(rec *storage.Record) bool { return sel.Matches(run.out.current(rec)) }
	}
	stream.Initial, stream.InitialEnd = initial(options)
	if options.AllowWatchBookmarks {
		stream.Bookmarks = s.options.BookmarkEvery
	}
	if sel.Everything() {
		stream.Matches = nil
	}
	run.stream = watch.New(stream)
	at := storage.Revision(0)
	if stream.Initial {
		at = after
	}
	// Up to here errors are answers; from here on they are ERROR events.
	if run.view, err = s.options.Registry.ViewAtLeast(ctx, at); err != nil {
		return err
	}
	if !stream.Initial && after == 0 {
		run.from = run.view.Revision()
	} else if !stream.Initial {
		run.from = after
	} else {
		run.from = run.view.Revision()
	}
	if req.Choice.WholeProtobuf() && sel.Everything() {
		defer req.Served.WatchedAsProto(req.Version)()
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout(options))
	defer cancel()
	defer context.AfterFunc(req.Served.Gone, cancel)()
	if inner, ok := webSocketRequest(w, req.HTTP); ok {
		return run.serveWebSocket(ctx, inner)
	}
	return run.serve(ctx)
}

// initial reports whether a watch begins with synthetic ADDED events for the existing
// objects, and whether a bookmark marks their end.
func initial(o *internalversion.ListOptions) (objects, end bool) {
	if o.SendInitialEvents != nil {
		return *o.SendInitialEvents, *o.SendInitialEvents && o.AllowWatchBookmarks
	}
	return o.ResourceVersion == "" || o.ResourceVersion == "0", false
}

// timeout returns how long a watch lasts.
func (s *Server) timeout(o *internalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if s.options.MinWatch == 0 {
		return 1<<63 - 1
	}
	return s.options.MinWatch + s.options.Jitter(s.options.MinWatch)
}

// run is one watch in progress: it drives the state machine of package watch with the
// store and the clock.
type run struct {
	server   *Server
	sel      *registry.Selection
	stream   *watch.Stream
	out      *writer
	view     storage.View
	from     storage.Revision
	replaced context.Context
	// wait is done when the next bookmark is due, at due.
	wait   context.Context
	due    time.Time
	cancel context.CancelFunc
	pace   pace
	// gathered is set while the watch has waited for further events before it sends.
	gathered bool
}

// gather waits for further events if all watches together send many. The pause is
// shorter than the end of a watch is allowed to take.
func (r *run) gather(events int) {
	moment := r.pace.sent(&r.server.traffic, time.Now(), events)
	if r.gathered = !moment.IsZero(); r.gathered {
		<-r.server.timer.C(moment)
	}
}

// send writes the frames of changes.
func (r *run) send(ctx context.Context, frames []watch.Frame) error {
	for r.gathered && len(frames) > 0 {
		n, err := r.out.chunk(ctx, frames)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		frames = frames[n:]
	}
	for _, frame := range frames {
		if err := r.out.frame(ctx, frame); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) serve(ctx context.Context) error {
	if err := r.out.open(); err != nil {
		return nil
	}
	from := min(r.from, r.view.Revision())
	cursor, err := r.server.options.Registry.Watch(r.sel, from)
	if err != nil {
		r.end(ctx, err)
		return nil
	}
	defer cursor.Close()
	defer func() {
		if r.cancel != nil {
			r.cancel()
		}
	}()
	present := r.sel.Converted(ctx, r.sel.Candidates(r.view), &err)
	for frame := range r.stream.Start(time.Now(), r.view.Revision(), present) {
		if err != nil {
			break
		}
		if r.out.frame(ctx, frame) != nil {
			return nil
		}
	}
	if err != nil {
		r.end(ctx, cmp.Or(ctx.Err(), err))
		return nil
	}
	r.view = nil // the view pins the records of its revision
	if r.out.flush() != nil {
		return nil
	}
	for {
		if err := r.next(ctx, cursor); err != nil {
			r.drain(ctx, cursor)
			r.end(ctx, err)
			return nil
		}
	}
}

// drain sends the events that were committed before the watch was told to end: none of
// them is left out because the end was noticed first.
func (r *run) drain(ctx context.Context, cursor storage.Cursor) {
	batch, err := cursor.Poll()
	if err != nil || len(batch.Events) == 0 {
		return
	}
	frames, err := r.frames(ctx, batch)
	if err != nil {
		return // the client sees the events when it resumes
	}
	for _, frame := range frames {
		if r.out.frame(context.WithoutCancel(ctx), frame) != nil {
			return
		}
	}
	_ = r.out.flush() // an error of the connection ends the watch anyway
}

// next waits for changes or for a bookmark to be due, and sends them.
func (r *run) next(ctx context.Context, cursor storage.Cursor) error {
	batch, err := cursor.Next(r.untilDue(ctx))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// The bookmark names the newest revision of the store, which may be newer than
		// the last event.
		batch, err = cursor.Poll()
	}
	if err != nil {
		return err
	}
	// The cursor does not return these events again: they are sent even if the watch is
	// told to end meanwhile. Writing to a disconnected client fails by itself.
	sending := context.WithoutCancel(ctx)
	frames, err := r.frames(ctx, batch)
	if err != nil {
		return err
	}
	if err := r.send(sending, frames); err != nil {
		return err
	}
	if frame, ok := r.stream.Tick(time.Now()); ok {
		if err := r.out.frame(sending, frame); err != nil {
			return err
		}
	}
	if err := r.out.flush(); err != nil {
		return err
	}
	r.gather(len(frames))
	return nil
}

// frames returns the frames of a batch of changes, whose objects it converts all at once if
// that takes network I/O. It ends with ctx then; the stream is not advanced if it fails.
func (r *run) frames(ctx context.Context, batch storage.Batch) ([]watch.Frame, error) {
	if !r.out.req.Served.RemoteConversion {
		return r.stream.Batch(batch), nil
	}
	records := make([]*storage.Record, 0, 2*len(batch.Events))
	for i := range batch.Events {
		e := &batch.Events[i]
		records = append(records, e.Record)
		if e.Previous != nil && !r.sel.Everything() {
			records = append(records, e.Previous)
		}
	}
	converted, err := r.server.options.Registry.ConvertedAll(ctx, r.out.req.Served, r.out.req.Version, records)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	clear(r.out.converted)
	for i, rec := range records {
		r.out.converted[rec] = converted[i]
	}
	return r.stream.Batch(batch), nil
}

// untilDue returns a context that is done when a bookmark is due.
func (r *run) untilDue(ctx context.Context) context.Context {
	due := r.stream.Due()
	if due.IsZero() {
		return ctx
	}
	if r.wait == nil || !due.Equal(r.due) {
		if r.cancel != nil {
			r.cancel()
		}
		r.due = due
		r.wait, r.cancel = context.WithDeadline(ctx, due)
	}
	return r.wait
}

// end sends the last frame. A watch that timed out or that fell too far behind ends
// without an error: the client resumes from its last revision. One whose revision was
// compacted gets a 410 ERROR event.
func (r *run) end(ctx context.Context, err error) {
	var frame watch.Frame
	var ok bool
	switch {
	case errors.Is(err, context.Canceled) && r.replaced.Err() == nil:
		return // the client has disconnected
	case errors.Is(err, storage.ErrCompacted):
		frame, ok = r.stream.Fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", r.from, r.server.options.Registry.Newest(ctx))))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, storage.ErrLagged), errors.Is(err, storage.ErrClosed):
		frame, ok = r.stream.Finish()
	default:
		frame, ok = r.stream.Fail(err)
	}
	if ok && r.out.frame(context.WithoutCancel(ctx), frame) == nil {
		_ = r.out.flush()
	}
}
