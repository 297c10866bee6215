// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/client/codec/internal/message"
	"github.com/steer-dev/steer/internal/kubejson"
)

// Options of decoding streams.
type Options struct {
	// DropManagedFields leaves metadata.managedFields out.
	DropManagedFields bool
	// Interner reads the protobuf objects of a cache; nil means that they have nothing
	// in common.
	Interner *Interner
}

// Interner keeps what the objects of a cache say alike in memory once: strings and,
// where the objects are not changed, whole parts of them. What it remembers for that
// is bounded, and forgotten when it does not come again. It serves one stream at
// a time, and all of them with the same options.
type Interner struct {
	// Parts lets objects share lists, maps and what pointers point to.
	Parts bool

	messages *message.Decoder // from the first stream on
}

// itemDecoder makes the objects of one stream.
type itemDecoder struct {
	gvk     schema.GroupVersionKind
	newItem func() runtime.Object
	opts    Options
	u       untyped // of JSON streams
	typed   json.Options
	buffer  []byte // of withoutManagedFields
}

func newItemDecoder(gvk schema.GroupVersionKind, newItem func() runtime.Object, opts Options) *itemDecoder {
	if in := opts.Interner; in != nil && in.messages == nil {
		in.messages = message.NewDecoder(message.Options{Share: in.Parts, DropManagedFields: opts.DropManagedFields})
	}
	return &itemDecoder{gvk: gvk, newItem: newItem, opts: opts, typed: dialect(opts.DropManagedFields)}
}

// finish gives obj its kind. The apiVersion of an unstructured object stays
// what the server said.
func (d *itemDecoder) finish(obj runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); !ok || u.GetKind() == "" {
		obj.GetObjectKind().SetGroupVersionKind(d.gvk)
	}
	if d.opts.DropManagedFields {
		if m, ok := obj.(metav1.Object); ok && len(m.GetManagedFields()) > 0 {
			m.SetManagedFields(nil)
		}
	}
}

// openJSON starts a JSON stream.
func (d *itemDecoder) openJSON(r io.Reader) *jsontext.Decoder {
	d.u.dec = newDecoder(r)
	return d.u.dec
}

// fromJSON reads one object in one pass over its bytes.
func (d *itemDecoder) fromJSON() (runtime.Object, error) {
	obj := d.newItem()
	if err := d.intoFromJSON(obj); err != nil {
		return nil, d.explain(err)
	}
	d.finish(obj)
	return obj, nil
}

func (d *itemDecoder) intoFromJSON(obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		m, err := d.u.object()
		if m == nil && err == nil {
			err = errNotObject
		}
		if d.opts.DropManagedFields {
			if metadata, ok := m["metadata"].(map[string]any); ok {
				delete(metadata, "managedFields")
			}
		}
		u.Object = m
		return err
	}
	if kubejson.OnePass(reflect.TypeOf(obj)) {
		return json.UnmarshalDecode(d.u.dec, obj, d.typed)
	}
	raw, err := d.u.dec.ReadValue()
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, obj)
}

// explain adds what to do about an object that does not fit its Go type.
func (d *itemDecoder) explain(err error) error {
	var mismatch *json.SemanticError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("decode %s: %w: the server's schema and the Go type disagree; regenerate the types, or read the kind as *unstructured.Unstructured", d.gvk.Kind, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("decode %s: %w", d.gvk.Kind, err)
}

// fromProtobuf reads one enveloped object.
func (d *itemDecoder) fromProtobuf(eventType watch.EventType, body []byte) (runtime.Object, error) {
	raw, err := unwrap(body)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", d.gvk.Kind, err)
	}
	if eventType == watch.Error {
		status := &metav1.Status{}
		return status, status.Unmarshal(raw)
	}
	return d.fromMessage(raw)
}

func (d *itemDecoder) fromMessage(raw []byte) (runtime.Object, error) {
	obj := d.newItem()
	m, ok := obj.(speaker)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form, but the server sent one", obj)
	}
	if in := d.opts.Interner; in != nil {
		if in.messages.Decode(raw, obj) {
			d.finish(obj)
			return obj, nil
		}
		obj = d.newItem()
		m = obj.(speaker)
	}
	if d.opts.DropManagedFields {
		raw, d.buffer = withoutManagedFields(raw, d.buffer)
	}
	if err := m.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode %s: %w", d.gvk.Kind, err)
	}
	d.finish(obj)
	return obj, nil
}
