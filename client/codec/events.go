// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client/codec/internal/message"
)

// maxFrame bounds one protobuf frame.
const maxFrame = 64 << 20

// Events reads a watch. The object of an ERROR event is a *metav1.Status.
type Events struct {
	next func() (watch.Event, error)
}

// NewEvents reads the events of body, whose objects are what newItem makes.
func NewEvents(contentType string, body io.Reader, gvk schema.GroupVersionKind, newItem func() runtime.Object, opts Options) *Events {
	d := newItemDecoder(gvk, newItem, opts)
	if strings.HasPrefix(contentType, Protobuf) {
		p := &protoEvents{r: body, d: d}
		return &Events{p.next}
	}
	j := &jsonEvents{d.openJSON(body), d}
	return &Events{j.next}
}

// Next waits for the next event. At the end of the stream the error is io.EOF;
// a stream cut in the middle of an event gives io.ErrUnexpectedEOF. After an
// error the stream is of no use.
func (e *Events) Next() (watch.Event, error) { return e.next() }

// jsonEvents reads {"type":...,"object":...} after one another.
type jsonEvents struct {
	dec *jsontext.Decoder
	d   *itemDecoder
}

func (j *jsonEvents) next() (e watch.Event, err error) {
	tok, err := j.dec.ReadToken()
	if err != nil {
		return e, err
	}
	if tok.Kind() != '{' {
		return e, errors.New("a watch event is not a JSON object")
	}
	var early []byte // the object, when it comes before the type
	for j.dec.PeekKind() != '}' {
		name, err := j.d.u.name()
		if err != nil {
			return e, j.d.explain(err)
		}
		switch name {
		case "type":
			raw, err := j.dec.ReadValue()
			if err != nil {
				return e, j.d.explain(err)
			}
			if raw.Kind() == '"' {
				e.Type = eventType(raw)
			}
		case "object":
			if e.Type == "" {
				raw, err := j.dec.ReadValue()
				if err != nil {
					return e, j.d.explain(err)
				}
				early = bytes.Clone(raw)
			} else if e.Object, err = j.object(e.Type); err != nil {
				return e, err
			}
		default:
			if err := j.dec.SkipValue(); err != nil {
				return e, j.d.explain(err)
			}
		}
	}
	if _, err := j.dec.ReadToken(); err != nil {
		return e, j.d.explain(err)
	}
	if early != nil {
		late := &jsonEvents{d: newItemDecoder(j.d.gvk, j.d.newItem, j.d.opts)}
		late.dec = late.d.openJSON(bytes.NewReader(early))
		e.Object, err = late.object(e.Type)
	}
	if err == nil && e.Object == nil {
		err = errors.New("a watch event without an object")
	}
	return e, err
}

func (j *jsonEvents) object(t watch.EventType) (runtime.Object, error) {
	if t != watch.Error {
		return j.d.fromJSON()
	}
	raw, err := j.dec.ReadValue()
	if err != nil {
		return nil, j.d.explain(err)
	}
	status := &metav1.Status{}
	return status, unmarshalJSON(raw, status)
}

// eventType is a type as it travels in JSON.
func eventType(raw jsontext.Value) watch.EventType {
	if inside := raw[1 : len(raw)-1]; bytes.IndexByte(inside, '\\') < 0 {
		return knownType(inside)
	}
	return watch.EventType(unquote(raw))
}

// knownType spares the usual types an allocation.
func knownType(name []byte) watch.EventType {
	for _, t := range [...]watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(name) == string(t) {
			return t
		}
	}
	return watch.EventType(name)
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
	// WatchEvent is {1: type, 2: RawExtension{1: raw}}; walking it saves the
	// copies that its Unmarshal makes.
	var e watch.Event
	var body []byte
	for rest := p.frame; len(rest) > 0; {
		field, after, err := message.Next(rest)
		if err != nil {
			return e, fmt.Errorf("decode watch event: %w", err)
		}
		rest = after
		switch field.Number {
		case 1:
			e.Type = knownType(field.Content)
		case 2:
			inner, _, err := message.Next(field.Content)
			if err == nil && inner.Number != 1 {
				err = fmt.Errorf("an object in field %d", inner.Number)
			}
			if err != nil {
				return e, fmt.Errorf("decode watch event: %w", err)
			}
			body = inner.Content
		}
	}
	var err error
	e.Object, err = p.d.fromProtobuf(e.Type, body)
	return e, err
}
