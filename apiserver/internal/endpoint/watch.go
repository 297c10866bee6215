// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// watch answers with the changes of a collection, until the time is up, the
// client leaves, the resource is replaced or the server stops.
func (h *Handler) watch(ctx context.Context, w *exchange.Writer, req *Request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, sel, err := h.listOptions(req)
	if err != nil {
		return err
	}
	after, err := registry.ParseRevision(options.ResourceVersion)
	if err != nil {
		return err // a 500, as clients have always been told
	}
	out := &watchWriter{h: h, w: w, req: req, choice: choice, metrics: h.options.Watched(&req.Request)}
	if choice.Shape == negotiate.Table {
		if out.printer = req.Version.Printer; out.printer == nil {
			out.printer = table.Default()
		}
	}
	run := &watching{h: h, sel: sel, out: out, replaced: req.Served.Gone}
	stream := watch.Options{Matches: sel.Matches, After: after}
	stream.Initial, stream.InitialEnd = initial(options)
	if options.AllowWatchBookmarks {
		stream.Bookmarks = h.options.BookmarkEvery
	}
	if sel.Everything() {
		stream.Matches = nil
	}
	run.stream = watch.New(stream)
	at := storage.Revision(0)
	if stream.Initial {
		at = after
	}
	// Errors up to here are answers; from here on they are events.
	if run.view, err = h.registry.Fresh(ctx, at); err != nil {
		return err
	}
	if !stream.Initial && after == 0 {
		run.from = run.view.Revision()
	} else if !stream.Initial {
		run.from = after
	} else {
		run.from = run.view.Revision()
	}
	if choice.WholeProtobuf() && sel.Everything() {
		defer req.Served.WatchedAsProto(req.Version)()
	}
	ctx, cancel := context.WithTimeout(ctx, h.life(options))
	defer cancel()
	defer context.AfterFunc(req.Served.Gone, cancel)()
	if inner, ok := socket(w, req.HTTP); ok {
		return run.serveSocket(ctx, inner)
	}
	return run.serve(ctx)
}

// initial reports whether a watch begins with the present objects, and whether a
// bookmark ends them.
func initial(o *internalversion.ListOptions) (objects, end bool) {
	if o.SendInitialEvents != nil {
		return *o.SendInitialEvents, *o.SendInitialEvents && o.AllowWatchBookmarks
	}
	return o.ResourceVersion == "" || o.ResourceVersion == "0", false
}

// life is how long a watch lasts.
func (h *Handler) life(o *internalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if h.options.MinWatch == 0 {
		return 1<<63 - 1
	}
	return h.options.MinWatch + h.options.Jitter(h.options.MinWatch)
}

// watching is one watch under way: it drives the protocol's state machine with
// the store and the clock.
type watching struct {
	h        *Handler
	sel      *registry.Selection
	stream   *watch.Stream
	out      *watchWriter
	view     storage.View
	from     storage.Revision
	replaced context.Context
	// wait ends when the next bookmark is due, at due.
	wait   context.Context
	due    time.Time
	cancel context.CancelFunc
	pace   watch.Pace
	// gathered tells that it has waited for what comes next.
	gathered bool
}

// gather lets events come together, if there is much to send. The pauses are short
// enough for the end of the watch to wait for them.
func (r *watching) gather(events int) {
	moment := r.pace.Sent(&r.h.traffic, time.Now(), events)
	if r.gathered = !moment.IsZero(); r.gathered {
		<-r.h.moments.at(moment)
	}
}

// send sends what changes have become.
func (r *watching) send(ctx context.Context, frames []watch.Frame) error {
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

func (r *watching) serve(ctx context.Context) error {
	if err := r.out.open(); err != nil {
		return nil
	}
	from := min(r.from, r.view.Revision())
	cursor, err := r.h.registry.Watch(r.sel, from)
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
	for frame := range r.stream.Start(time.Now(), r.view.Revision(), r.sel.Candidates(r.view)) {
		if r.out.frame(ctx, frame) != nil {
			return nil
		}
	}
	r.view = nil // it pins what it shows
	if r.out.flush() != nil {
		return nil
	}
	for {
		if err := r.next(ctx, cursor); err != nil {
			r.rest(ctx, cursor)
			r.end(ctx, err)
			return nil
		}
	}
}

// rest sends what was there when the watch was told to end: an event that was
// committed before the end is never left out because both came at once.
func (r *watching) rest(ctx context.Context, cursor storage.Cursor) {
	batch, err := cursor.Poll()
	if err != nil || len(batch.Events) == 0 {
		return
	}
	for _, frame := range r.stream.Batch(batch) {
		if r.out.frame(context.WithoutCancel(ctx), frame) != nil {
			return
		}
	}
	_ = r.out.flush() // the end of the watch says the rest
}

// next waits for changes, or for a bookmark to be due, and sends them.
func (r *watching) next(ctx context.Context, cursor storage.Cursor) error {
	batch, err := cursor.Next(r.untilDue(ctx))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// The bookmark names the newest revision, not that of the last event.
		batch, err = cursor.Poll()
	}
	if err != nil {
		return err
	}
	// The cursor does not yield them again: what it has given is sent, whatever
	// ends the watch meanwhile. Writing to a client that has left fails by itself.
	sending := context.WithoutCancel(ctx)
	frames := r.stream.Batch(batch)
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

// untilDue returns a context that ends when a bookmark is due.
func (r *watching) untilDue(ctx context.Context) context.Context {
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

// end sends the last frame. A watch whose time is up, or that has fallen
// behind, ends in order: the client resumes where it is. One that asks for what
// is gone is told so.
func (r *watching) end(ctx context.Context, err error) {
	var frame watch.Frame
	var ok bool
	switch {
	case errors.Is(err, context.Canceled) && r.replaced.Err() == nil:
		return // the client has left
	case errors.Is(err, storage.ErrCompacted):
		frame, ok = r.stream.Fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", r.from, r.h.registry.Newest(ctx))))
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
