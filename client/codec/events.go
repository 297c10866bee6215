// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// maxFrame bounds one protobuf frame, as the API server does.
const maxFrame = 64 << 20

// Options of decoding streams.
type Options struct {
	// DropManagedFields leaves metadata.managedFields out.
	DropManagedFields bool
}

// Events reads a watch. The object of an ERROR event is a *metav1.Status.
type Events struct {
	next func() (watch.Event, error)
}

// NewEvents reads the events of body, whose objects are what newItem makes.
func NewEvents(contentType string, body io.Reader, gvk schema.GroupVersionKind, newItem func() runtime.Object, opts Options) *Events {
	d := &itemDecoder{gvk: gvk, newItem: newItem, opts: opts}
	if strings.HasPrefix(contentType, Protobuf) {
		return &Events{(&protoEvents{r: body, d: d}).next}
	}
	return &Events{newJSONEvents(body, d).next}
}

// Next waits for the next event. At the end of the stream the error is io.EOF;
// a stream cut in the middle of an event gives io.ErrUnexpectedEOF.
func (e *Events) Next() (watch.Event, error) { return e.next() }

// itemDecoder makes the objects of a stream.
type itemDecoder struct {
	gvk     schema.GroupVersionKind
	newItem func() runtime.Object
	opts    Options
}

func (d *itemDecoder) finish(obj runtime.Object) {
	obj.GetObjectKind().SetGroupVersionKind(d.gvk)
	if d.opts.DropManagedFields {
		if m, ok := obj.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
	}
}

// protoEvents reads length-prefixed frames, each a WatchEvent whose object is
// an enveloped message.
type protoEvents struct {
	r     io.Reader
	d     *itemDecoder
	frame []byte
}

func (p *protoEvents) next() (watch.Event, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return watch.Event{}, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > maxFrame {
		return watch.Event{}, fmt.Errorf("a watch event of %d bytes is more than the limit of %d", n, maxFrame)
	}
	if cap(p.frame) < n {
		p.frame = make([]byte, n)
	}
	p.frame = p.frame[:n]
	if _, err := io.ReadFull(p.r, p.frame); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return watch.Event{}, err
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(p.frame); err != nil {
		return watch.Event{}, fmt.Errorf("decode watch event: %w", err)
	}
	obj, err := p.d.protobuf(watch.EventType(e.Type), e.Object.Raw)
	return watch.Event{Type: watch.EventType(e.Type), Object: obj}, err
}

func (d *itemDecoder) protobuf(eventType watch.EventType, body []byte) (runtime.Object, error) {
	raw, err := unwrap(body)
	if err != nil {
		return nil, err
	}
	if eventType == watch.Error {
		status := &metav1.Status{}
		return status, status.Unmarshal(raw)
	}
	return d.message(raw)
}

func (d *itemDecoder) message(raw []byte) (runtime.Object, error) {
	obj := d.newItem()
	m, ok := obj.(message)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form, but the server sent one", obj)
	}
	if err := m.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %s: %w", d.gvk.Kind, err)
	}
	d.finish(obj)
	return obj, nil
}
