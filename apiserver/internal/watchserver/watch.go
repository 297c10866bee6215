// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
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

// The ends of a watch that are no failures. Both are causes of the context of a watch.
var (
	// errOver ends a watch whose time is over, or whose resource is replaced or removed.
	errOver = errors.New("the watch is over")
	// errDisconnected ends a watch without a last event.
	errDisconnected = errors.New("the client has disconnected")
)

// Serve sends the changes of a collection until the timeout of the watch ends, the
// client disconnects, the resource is replaced or the server stops. An error is the
// answer to the request: no event was sent.
func (s *Server) Serve(ctx context.Context, w *exchange.Writer, req *Request) error {
	stream := watch.Options{After: req.After}
	stream.Initial, stream.InitialEnd = initial(req.Options)
	if req.Options.AllowWatchBookmarks {
		stream.Bookmarks = s.options.BookmarkEvery
	}
	at := storage.Revision(0)
	if stream.Initial {
		at = req.After
	}
	// Up to here errors are answers; from here on they are ERROR events.
	view, err := s.options.Registry.ViewAtLeast(ctx, at)
	if err != nil {
		return err
	}
	r := &run{server: s, sel: req.Selection, out: &writer{server: s, w: w, req: req}, view: view, from: view.Revision()}
	if !stream.Initial && req.After > 0 {
		r.from = req.After
	}
	if req.Served.RemoteConversion {
		r.out.converted = map[*storage.Record]*storage.Record{}
	}
	ctx, cancel := s.bounded(ctx, req)
	defer cancel()
	if !r.sel.Everything() {
		stream.Matches = func(rec *storage.Record) (bool, error) { return r.sel.Matches(ctx, r.out.current(rec)) }
	}
	r.stream = watch.New(stream)
	if req.Choice.WholeProtobuf() && r.sel.Everything() {
		defer req.Served.WatchedAsProto(req.Version)()
	}
	r.connect(ctx, r.stored)
	return nil
}

// bounded returns a context that ends with the watch of a request: with the cause
// [errOver], or because its parent does.
func (s *Server) bounded(parent context.Context, req *Request) (context.Context, context.CancelFunc) {
	ctx, over := context.WithCancelCause(parent)
	unwatch := context.AfterFunc(req.Served.Gone, func() { over(errOver) })
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout(req.Options), errOver)
	return ctx, func() {
		cancel()
		unwatch()
		over(nil)
	}
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
// events of the store or of a backend, and with the clock.
type run struct {
	server *Server
	stream *watch.Stream
	out    *writer
	sel    *registry.Selection

	// The others are those of stored objects.
	// view has the present objects; nil once they are sent.
	view  storage.View
	from  storage.Revision
	alarm alarm
	pace  pace
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

// connect serves the watch over HTTP or a WebSocket, as the client requested.
func (r *run) connect(ctx context.Context, events func(context.Context) error) {
	if inner, ok := webSocketRequest(r.out.w, r.out.req.HTTP); ok {
		r.serveWebSocket(ctx, inner, events)
		return
	}
	r.serve(ctx, events)
}

// serve sends all events of a watch: those that events sends until it returns why the
// watch ends, and the last one.
func (r *run) serve(ctx context.Context, events func(context.Context) error) {
	r.out.open()
	err := events(ctx)
	if frame, ok := r.last(err); ok && r.out.frame(context.WithoutCancel(ctx), frame) == nil {
		_ = r.out.flush() // an error of the connection ends the watch anyway
	}
}

// stored sends the events of stored objects until the watch ends. The error is the reason.
func (r *run) stored(ctx context.Context) error {
	cursor, err := r.server.options.Registry.Watch(r.sel, min(r.from, r.view.Revision()))
	if err != nil {
		return err
	}
	defer cursor.Close()
	defer r.alarm.stop()
	for frame, err := range r.stream.Start(time.Now(), r.view.Revision(), r.sel.Converted(ctx, r.sel.Candidates(r.view))) {
		if err != nil {
			return stopped(ctx, err)
		}
		if err := r.out.frame(ctx, frame); err != nil {
			return err
		}
	}
	r.view = nil // the view pins the records of its revision
	if err := r.out.flush(); err != nil {
		return err
	}
	// What was committed before the watch was told to end is sent, in wait or in one more
	// round: none of it is left out because the end was noticed first.
	for over := false; !over; {
		over = ctx.Err() != nil
		if err := r.next(ctx, cursor); err != nil {
			return err
		}
	}
	return stopped(ctx, nil)
}

// stopped returns why ctx has ended: [errOver] or [errDisconnected]; err if it has not.
func stopped(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case errors.Is(context.Cause(ctx), errOver):
		return errOver
	}
	return errDisconnected
}

// next waits for changes or for a bookmark to be due, and sends them.
func (r *run) next(ctx context.Context, cursor storage.Cursor) error {
	batch, err := r.wait(ctx, cursor)
	if err != nil {
		return err
	}
	// The cursor does not return these events again: they are sent even if the watch is
	// told to end meanwhile. Writing to a disconnected client fails by itself.
	frames, failed := r.frames(ctx, batch)
	sending := context.WithoutCancel(ctx)
	if err := r.send(sending, frames); err != nil {
		return err
	}
	if failed != nil {
		return stopped(ctx, failed)
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

// wait returns the next changes, or none if a bookmark is due before there are any. The
// error is that of the cursor, or why ctx has ended; all changes were returned then.
func (r *run) wait(ctx context.Context, cursor storage.Cursor) (storage.Batch, error) {
	until := r.alarm.set(ctx, r.stream.Due())
	batch, err := cursor.Next(until)
	if err == nil || until.Err() == nil {
		return batch, err
	}
	if ctx.Err() != nil {
		return batch, stopped(ctx, err)
	}
	// The bookmark names the newest revision of the store, which may be newer than the
	// last change.
	return cursor.Poll()
}

// alarm is a context that ends at a time, kept from one wait for changes to the next: making
// one for each wait doubles what the delivery of a change to 200 watches allocates. Its zero
// value is ready; it is for one goroutine at a time.
type alarm struct {
	at     time.Time
	ctx    context.Context
	cancel context.CancelFunc
}

// set returns a context that ends with parent, the same in all calls, or at a time; zero is
// never.
func (a *alarm) set(parent context.Context, at time.Time) context.Context {
	if at.IsZero() {
		return parent
	}
	if a.ctx == nil || !at.Equal(a.at) {
		a.stop()
		a.at = at
		a.ctx, a.cancel = context.WithDeadline(parent, at)
	}
	return a.ctx
}

// stop releases the context.
func (a *alarm) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}

// frames returns the frames of a batch of changes, whose objects it converts all at once if
// that takes network I/O. It ends with ctx then. With an error the frames are those before
// the change that failed.
func (r *run) frames(ctx context.Context, batch storage.Batch) ([]watch.Frame, error) {
	if !r.out.req.Served.RemoteConversion {
		return r.stream.Batch(batch)
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
		return nil, err
	}
	clear(r.out.converted)
	for i, rec := range records {
		r.out.converted[rec] = converted[i]
	}
	return r.stream.Batch(batch)
}

// last returns the frame that ends the watch, if any. A watch that is over or that fell
// too far behind ends without an error: the client resumes from its last revision. One
// whose revision was compacted gets a 410 ERROR event.
func (r *run) last(err error) (watch.Frame, bool) {
	switch {
	case errors.Is(err, errDisconnected):
		return watch.Frame{}, false
	case errors.Is(err, storage.ErrCompacted):
		return r.stream.Fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", r.from, r.server.options.Registry.Newest())))
	case errors.Is(err, errOver), errors.Is(err, storage.ErrLagged), errors.Is(err, storage.ErrClosed):
		return r.stream.Finish()
	}
	return r.stream.Fail(err)
}
