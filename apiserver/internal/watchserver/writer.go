// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"context"
	"encoding/json"
	"strconv"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/watch"
	"github.com/steer-dev/steer/storage"
)

// writer writes the frames of one watch in the negotiated representation.
type writer struct {
	server *Server
	w      *exchange.Writer
	req    *Request
	// headed is set once the column definitions of the table were sent.
	headed  bool
	pending bool
	// buffer holds the frames that are not written yet, nil if there are none; sizes
	// are those of their objects.
	buffer *[]byte
	sizes  []int
	// socket receives the frames instead of w, as messages that end at ends.
	socket *websocket.Conn
	ends   []int
	// converted are the records of the frames in the version of the watch; nil if the
	// records need no conversion by network I/O.
	converted map[*storage.Record]*storage.Record
}

// current returns a record in the version of the watch.
func (o *writer) current(rec *storage.Record) *storage.Record {
	if converted := o.converted[rec]; converted != nil {
		return converted
	}
	return rec
}

// open sends the response headers.
func (o *writer) open() {
	if o.socket != nil {
		return
	}
	contentType := o.req.Choice.Media.ContentType()
	if o.req.Choice.Media == negotiation.Protobuf {
		contentType += ";stream=watch"
	}
	o.w.Header().Set("Content-Type", contentType)
	o.w.WriteHeader(200)
	o.w.Flush()
}

// flushAt is how many bytes a watch buffers before it writes: about what 200 watches
// receive in one pause, and less than the initial window of an HTTP/2 stream.
const flushAt = 60 << 10

// flush writes the buffered frames; the error is [errDisconnected].
func (o *writer) flush() error {
	if o.buffer != nil {
		err := o.write()
		if cap(*o.buffer) <= 2*flushAt {
			*o.buffer = (*o.buffer)[:0]
			o.server.buffers.Put(o.buffer)
		}
		if o.buffer = nil; err != nil {
			return errDisconnected
		}
	}
	if o.pending {
		o.pending = false
		if o.socket == nil {
			o.w.Flush()
		}
		o.req.Metrics.observe(o.sizes)
		o.sizes = o.sizes[:0]
	}
	return nil
}

func (o *writer) write() error {
	if o.socket != nil {
		return o.writeMessages()
	}
	_, err := o.w.Write(*o.buffer)
	return err
}

// frame buffers one frame. The error is that of encoding its object, or [errDisconnected].
func (o *writer) frame(ctx context.Context, f watch.Frame) error {
	object, err := o.object(ctx, &f)
	if err != nil {
		return err
	}
	o.append(f.Type, object)
	if f.Type != watch.Error {
		o.sizes = append(o.sizes, object.Len())
	}
	if len(*o.buffer) > flushAt {
		return o.flush()
	}
	return nil
}

func (o *writer) append(t watch.Type, object wire.Pieces) {
	o.pending = true
	if o.buffer == nil {
		o.buffer, _ = o.server.buffers.Get().(*[]byte)
		if o.buffer == nil {
			o.buffer = new([]byte)
		}
	}
	b := o.appendFrame(*o.buffer, t, object)
	if *o.buffer = b; o.socket != nil {
		o.ends = append(o.ends, len(b))
	}
}

func (o *writer) appendFrame(b []byte, t watch.Type, object wire.Pieces) []byte {
	if o.req.Choice.Media == negotiation.Protobuf {
		return wire.AppendEvent(b, string(t), object, o.socket == nil) // a WebSocket message needs no length prefix
	}
	b = append(b, `{"type":"`...)
	b = append(b, t...)
	b = append(b, `","object":`...)
	b = object.AppendTo(b)
	return append(b, "}\n"...)
}

// object returns the encoded object of a frame.
func (o *writer) object(ctx context.Context, f *watch.Frame) (wire.Pieces, error) {
	switch f.Type {
	case watch.Error:
		status, err := o.status(f.Err)
		return wire.Pieces{Head: status}, err
	case watch.Bookmark:
		bookmark, err := o.bookmark(f)
		return wire.Pieces{Head: bookmark}, err
	}
	rec := o.current(f.Record)
	if f.Revision != 0 {
		// The object left the selection: a DELETED event carries its last selected
		// state at this revision.
		var err error
		if rec, err = o.server.options.Registry.WithRevision(ctx, o.req.Served, o.req.Version, rec, f.Revision); err != nil {
			return wire.Pieces{}, err
		}
	}
	if o.req.Choice.Shape == negotiation.Table {
		table, err := o.table(ctx, rec)
		return wire.Pieces{Head: table}, err
	}
	return o.req.Object(ctx, o.server.options.Registry, rec)
}

func (o *writer) table(ctx context.Context, rec *storage.Record) ([]byte, error) {
	t, err := o.req.Tables.Record(ctx, o.server.options.Registry, &o.req.Representation, rec)
	if err != nil {
		return nil, err
	}
	return o.encodeTable(t)
}

// encodeTable encodes a table; only the first one of a watch has column definitions.
func (o *writer) encodeTable(t *metav1.Table) ([]byte, error) {
	if o.headed {
		t.ColumnDefinitions = nil
	}
	o.headed = true
	return representation.TableJSON(t)
}

func (o *writer) status(err error) ([]byte, error) {
	status := o.req.Status(err)
	if o.req.Choice.Media != negotiation.Protobuf {
		return json.Marshal(status)
	}
	raw, err := status.Marshal()
	return wire.Envelope("v1", "Status", raw), err
}

// bookmark returns an object of the watched kind that has only a resourceVersion.
func (o *writer) bookmark(f *watch.Frame) ([]byte, error) {
	revision := strconv.FormatInt(int64(f.Revision), 10)
	in, v := o.req.Served, o.req.Version
	var annotations map[string]string
	if f.InitialEnd {
		annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	kind, apiVersion := in.Kind, in.APIVersion(v)
	if o.req.Choice.Shape != negotiation.Whole {
		kind, apiVersion = "PartialObjectMetadata", o.req.Choice.MetaAPIVersion()
	}
	if o.req.Choice.Media == negotiation.Protobuf {
		var obj resource.Object = &metav1.PartialObjectMetadata{}
		if o.req.Choice.Shape == negotiation.Whole {
			obj = v.NewProtobuf()
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
	if err != nil || o.req.Choice.Shape != negotiation.Table {
		return raw, err
	}
	empty := v.NewObject()
	empty.SetResourceVersion(revision)
	t, err := o.req.Tables.Row(&o.req.Representation, empty, raw)
	if err != nil {
		return nil, err
	}
	return o.encodeTable(t)
}
