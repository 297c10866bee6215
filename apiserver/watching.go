// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// watch answers with the changes of a collection, until the time is up, the
// client leaves, the resource is replaced or the server stops.
func (s *Server) watch(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, sel, err := listOptions(req)
	if err != nil {
		return err
	}
	sel.s = s
	after, err := parseRevision(options.ResourceVersion)
	if err != nil {
		return err // a 500, as clients have always been told
	}
	out := &watchWriter{s: s, w: w, req: req, choice: choice, metrics: s.metrics.watch(req)}
	if choice.Shape == negotiate.Table {
		if out.printer = req.Version.Printer; out.printer == nil {
			out.printer = table.Default()
		}
	}
	run := &watching{s: s, sel: sel, out: out, replaced: req.in.gone}
	stream := watch.Options{Matches: sel.matches, After: after}
	stream.Initial, stream.InitialEnd = initial(options)
	if options.AllowWatchBookmarks {
		stream.Bookmarks = s.limits.BookmarkEvery
	}
	if sel.everything() {
		stream.Matches = nil
	}
	run.stream = watch.New(stream)
	at := storage.Revision(0)
	if stream.Initial {
		at = after
	}
	// Errors up to here are answers; from here on they are events.
	if run.view, err = s.fresh(ctx, at); err != nil {
		return err
	}
	if !stream.Initial && after == 0 {
		run.from = run.view.Revision()
	} else if !stream.Initial {
		run.from = after
	} else {
		run.from = run.view.Revision()
	}
	ctx, cancel := context.WithTimeout(ctx, s.life(options))
	defer cancel()
	defer context.AfterFunc(req.in.gone, cancel)()
	return run.serve(ctx)
}

// initial tells whether a watch begins with the present objects, and whether a
// bookmark ends them.
func initial(o *internalversion.ListOptions) (objects, end bool) {
	if o.SendInitialEvents != nil {
		return *o.SendInitialEvents, *o.SendInitialEvents && o.AllowWatchBookmarks
	}
	return o.ResourceVersion == "" || o.ResourceVersion == "0", false
}

// life is how long a watch lasts.
func (s *Server) life(o *internalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if s.limits.MinWatch == 0 {
		return 1<<63 - 1
	}
	return s.limits.MinWatch + s.entropy.Jitter(s.limits.MinWatch)
}

// watching is one watch under way: it drives the protocol's state machine with
// the store and the clock.
type watching struct {
	s        *Server
	sel      *selection
	stream   *watch.Stream
	out      *watchWriter
	view     storage.View
	from     storage.Revision
	replaced context.Context
	// wait ends when the next bookmark is due, at due.
	wait   context.Context
	due    time.Time
	cancel context.CancelFunc
	pause  *time.Timer
}

// Waking a watch and writing to its connection costs about the same for one
// event as for five. So in a crowd a watch that has just sent something gathers
// what comes next for a while, which grows with the crowd: all watches together
// wake up some 10,000 times per second. An event that follows no other at once
// goes out at once.
const (
	crowd         = 32
	pausePerWatch = 100 * time.Microsecond
	maxPause      = 20 * time.Millisecond
)

// gather lets events come together, if there are many watches.
func (r *watching) gather(ctx context.Context) {
	_, _, watches := r.s.gate.Counts()
	if watches < crowd {
		return
	}
	pause := min(time.Duration(watches)*pausePerWatch, maxPause)
	if r.pause == nil {
		r.pause = time.NewTimer(pause)
	} else {
		r.pause.Reset(pause)
	}
	select {
	case <-r.pause.C:
	case <-ctx.Done():
	}
}

func (r *watching) serve(ctx context.Context) error {
	if err := r.out.open(); err != nil {
		return nil
	}
	where := storage.Range{Bucket: r.sel.in.Storage.Bucket, Prefix: r.sel.prefix()}
	if key, ok := r.sel.key(); ok {
		where.Prefix = key.Name
	}
	from := min(r.from, r.view.Revision())
	cursor, err := r.s.store.Watch(where, from)
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
	for frame := range r.stream.Start(time.Now(), r.view.Revision(), r.present()) {
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

// present yields the objects that a watch begins with.
func (r *watching) present() iter.Seq[*storage.Record] {
	return func(yield func(*storage.Record) bool) {
		if key, ok := r.sel.key(); ok {
			if rec := r.view.Get(key); rec != nil {
				yield(rec)
			}
			return
		}
		for rec := range r.view.Ascend(r.sel.in.Storage.Bucket, r.sel.prefix(), "") {
			if !yield(rec) {
				return
			}
		}
	}
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
	for _, frame := range r.stream.Batch(batch) {
		if err := r.out.frame(sending, frame); err != nil {
			return err
		}
	}
	if frame, ok := r.stream.Tick(time.Now()); ok {
		if err := r.out.frame(sending, frame); err != nil {
			return err
		}
	}
	if err := r.out.flush(); err != nil {
		return err
	}
	r.gather(ctx)
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
		newest := storage.Revision(0)
		if view, err := r.s.store.View(ctx, 0); err == nil {
			newest = view.Revision()
		}
		frame, ok = r.stream.Fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", r.from, newest)))
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

// watchWriter writes frames in the form that was chosen.
type watchWriter struct {
	s       *Server
	w       *exchange.Writer
	req     *request
	choice  negotiate.Choice
	metrics watched
	// printer of a watch that is answered with tables.
	printer resource.Printer
	// headed tells that the columns of a table have been sent.
	headed  bool
	pending bool
	buffer  []byte
}

// open sends the headers.
func (o *watchWriter) open() error {
	contentType := o.choice.Media.ContentType()
	if o.choice.Media == negotiate.Protobuf {
		contentType += ";stream=watch"
	}
	o.w.Header().Set("Content-Type", contentType)
	o.w.WriteHeader(200)
	o.w.Flush()
	return nil
}

// flushAt is how much a watch gathers before it writes.
const flushAt = 32 << 10

func (o *watchWriter) flush() error {
	if len(o.buffer) > 0 {
		_, err := o.w.Write(o.buffer)
		if o.buffer = o.buffer[:0]; cap(o.buffer) > 4*flushAt {
			o.buffer = nil
		}
		if err != nil {
			return err
		}
	}
	if o.pending {
		o.pending = false
		o.w.Flush()
	}
	return nil
}

// frame appends one frame; an error means that the watch cannot go on.
func (o *watchWriter) frame(ctx context.Context, f watch.Frame) error {
	object, err := o.object(ctx, &f)
	if err != nil {
		// An object that cannot be shown ends the watch, but not silently.
		f = watch.Frame{Type: watch.Error, Err: err}
		if object, err = o.object(ctx, &f); err != nil {
			return err
		}
		o.append(f.Type, object)
		_ = o.flush()
		return context.Canceled
	}
	o.append(f.Type, object)
	o.metrics.sent(len(object))
	o.pending = true
	if len(o.buffer) > flushAt {
		return o.flush()
	}
	return nil
}

func (o *watchWriter) append(t watch.Type, object []byte) {
	o.pending = true
	if o.choice.Media == negotiate.Protobuf {
		o.buffer = append(o.buffer, wire.EventFrame(string(t), object)...)
		return
	}
	o.buffer = append(o.buffer, `{"type":"`...)
	o.buffer = append(o.buffer, t...)
	o.buffer = append(o.buffer, `","object":`...)
	o.buffer = append(o.buffer, object...)
	o.buffer = append(o.buffer, "}\n"...)
}

// object returns the encoded object of a frame.
func (o *watchWriter) object(ctx context.Context, f *watch.Frame) ([]byte, error) {
	switch f.Type {
	case watch.Error:
		return o.status(f.Err)
	case watch.Bookmark:
		return o.bookmark(f)
	}
	rec := f.Record
	if f.Revision != 0 && rec.Stamp > 0 {
		// It left the selection: its last selected state, at this revision.
		rec = &storage.Record{
			Key: rec.Key, Created: rec.Created, Modified: rec.Modified, Stamp: rec.Stamp,
			Value: wire.Restamp(rec.Value, rec.Stamp, int64(f.Revision)),
		}
	}
	if o.choice.Shape == negotiate.Table {
		return o.table(ctx, rec)
	}
	return o.s.object1(ctx, o.choice, o.req.in, o.req.Version, rec)
}

func (o *watchWriter) table(ctx context.Context, rec *storage.Record) ([]byte, error) {
	t, err := o.s.tableOf(ctx, o.req, o.choice, o.req.in, o.req.Version, []*storage.Record{rec})
	if err != nil {
		return nil, err
	}
	t.ResourceVersion = wire.String(rec.Value, "metadata", "resourceVersion")
	return o.headless(t)
}

// headless encodes a table; only the first of a watch has the columns.
func (o *watchWriter) headless(t *metav1.Table) ([]byte, error) {
	if o.headed {
		t.ColumnDefinitions = nil
	}
	o.headed = true
	return tableJSON(t)
}

func (o *watchWriter) status(err error) ([]byte, error) {
	status := o.s.statusOf(o.req, err)
	if o.choice.Media != negotiate.Protobuf {
		return json.Marshal(status)
	}
	raw, err := status.Marshal()
	return wire.Envelope("v1", "Status", raw), err
}

// bookmark is an object of the watched kind with nothing but a revision.
func (o *watchWriter) bookmark(f *watch.Frame) ([]byte, error) {
	revision := strconv.FormatInt(int64(f.Revision), 10)
	in, v := o.req.in, o.req.Version
	var annotations map[string]string
	if f.InitialEnd {
		annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	kind, apiVersion := in.Kind, in.APIVersion(v)
	if o.choice.Shape != negotiate.Whole {
		kind, apiVersion = "PartialObjectMetadata", metaVersion(o.choice)
	}
	if o.choice.Media == negotiate.Protobuf {
		var obj resource.Object = &metav1.PartialObjectMetadata{}
		if o.choice.Shape == negotiate.Whole {
			obj = v.NewObject()
		}
		obj.SetResourceVersion(revision)
		obj.SetAnnotations(annotations)
		raw, err := marshalProto(obj)
		return wire.Envelope(apiVersion, kind, raw), err
	}
	partial := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: kind, APIVersion: apiVersion},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision, Annotations: annotations},
	}
	raw, err := json.Marshal(partial)
	if err != nil || o.choice.Shape != negotiate.Table {
		return raw, err
	}
	cells := make([]any, len(o.printer.Columns()))
	for i := range cells {
		cells[i] = ""
	}
	return o.headless(&metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: metaVersion(o.choice)},
		ListMeta:          metav1.ListMeta{ResourceVersion: revision},
		ColumnDefinitions: o.printer.Columns(),
		Rows:              []metav1.TableRow{{Cells: cells, Object: runtime.RawExtension{Raw: raw}}},
	})
}
