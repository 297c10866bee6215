// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"encoding/json"
	"strconv"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// watchWriter writes frames in the form that was chosen.
type watchWriter struct {
	h       *Handler
	w       *exchange.Writer
	req     *Request
	choice  negotiate.Choice
	metrics Watched
	// printer of a watch that is answered with tables.
	printer resource.Printer
	// headed tells that the columns of a table have been sent.
	headed  bool
	pending bool
	// buffer are the frames that have not been written, nil when there are none;
	// sizes are those of their objects.
	buffer *[]byte
	sizes  []int
	// socket takes the frames in place of w, as messages that end at ends.
	socket *websocket.Conn
	ends   []int
}

// open sends the headers.
func (o *watchWriter) open() error {
	if o.socket != nil {
		return nil
	}
	contentType := o.choice.Media.ContentType()
	if o.choice.Media == negotiate.Protobuf {
		contentType += ";stream=watch"
	}
	o.w.Header().Set("Content-Type", contentType)
	o.w.WriteHeader(200)
	o.w.Flush()
	return nil
}

// flushAt is how much a watch gathers before it writes: what 200 watches get at once
// when they gather, and less than HTTP/2 sends unasked.
const flushAt = 60 << 10

func (o *watchWriter) flush() error {
	if o.buffer != nil {
		err := o.write()
		if cap(*o.buffer) <= 2*flushAt {
			*o.buffer = (*o.buffer)[:0]
			o.h.buffers.Put(o.buffer)
		}
		if o.buffer = nil; err != nil {
			return err
		}
	}
	if o.pending {
		o.pending = false
		if o.socket == nil {
			o.w.Flush()
		}
		o.metrics.sent(o.sizes)
		o.sizes = o.sizes[:0]
	}
	return nil
}

func (o *watchWriter) write() error {
	if o.socket != nil {
		return o.messages()
	}
	_, err := o.w.Write(*o.buffer)
	return err
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
	o.sizes = append(o.sizes, object.Len())
	if len(*o.buffer) > flushAt {
		return o.flush()
	}
	return nil
}

func (o *watchWriter) append(t watch.Type, object wire.Rope) {
	o.pending = true
	if o.buffer == nil {
		o.buffer, _ = o.h.buffers.Get().(*[]byte)
		if o.buffer == nil {
			o.buffer = new([]byte)
		}
	}
	b := o.appendFrame(*o.buffer, t, object)
	if *o.buffer = b; o.socket != nil {
		o.ends = append(o.ends, len(b))
	}
}

func (o *watchWriter) appendFrame(b []byte, t watch.Type, object wire.Rope) []byte {
	if o.choice.Media == negotiate.Protobuf {
		return wire.AppendEvent(b, string(t), object, o.socket == nil) // a message knows its length
	}
	b = append(b, `{"type":"`...)
	b = append(b, t...)
	b = append(b, `","object":`...)
	b = object.AppendTo(b)
	return append(b, "}\n"...)
}

// object returns the encoded object of a frame.
func (o *watchWriter) object(ctx context.Context, f *watch.Frame) (wire.Rope, error) {
	switch f.Type {
	case watch.Error:
		status, err := o.status(f.Err)
		return wire.Rope{Head: status}, err
	case watch.Bookmark:
		bookmark, err := o.bookmark(f)
		return wire.Rope{Head: bookmark}, err
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
		table, err := o.table(ctx, rec)
		return wire.Rope{Head: table}, err
	}
	return o.h.object1(ctx, o.choice, o.req.Served, o.req.Version, rec)
}

func (o *watchWriter) table(ctx context.Context, rec *storage.Record) ([]byte, error) {
	t, err := o.h.tableOf(ctx, o.req, o.choice, o.req.Served, o.req.Version, []*storage.Record{rec})
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
	status := o.h.Status(o.req, err)
	if o.choice.Media != negotiate.Protobuf {
		return json.Marshal(status)
	}
	raw, err := status.Marshal()
	return wire.Envelope("v1", "Status", raw), err
}

// bookmark is an object of the watched kind with nothing but a revision.
func (o *watchWriter) bookmark(f *watch.Frame) ([]byte, error) {
	revision := strconv.FormatInt(int64(f.Revision), 10)
	in, v := o.req.Served, o.req.Version
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
		raw, err := registry.MarshalProto(obj)
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
	empty := v.NewObject()
	empty.SetResourceVersion(revision)
	cells, err := o.printer.Cells(empty)
	if err != nil {
		return nil, err
	}
	return o.headless(&metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: metaVersion(o.choice)},
		ListMeta:          metav1.ListMeta{ResourceVersion: revision},
		ColumnDefinitions: o.printer.Columns(),
		Rows:              []metav1.TableRow{{Cells: cells, Object: runtime.RawExtension{Raw: raw}}},
	})
}
