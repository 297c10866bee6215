// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Items reads a list item by item; the list as a whole is never built.
type Items struct {
	d    *itemDecoder
	meta metav1.ListMeta

	// JSON
	dec   *jsontext.Decoder
	state itemsState
	// protobuf
	list *protoList
}

type itemsState uint8

const (
	beforeList  itemsState = iota // nothing read
	betweenKeys                   // inside the list's object
	insideItems                   // inside its items
	afterList
)

// NewItems reads the items of body, which are what newItem makes.
func NewItems(contentType string, body io.Reader, gvk schema.GroupVersionKind, newItem func() runtime.Object, opts Options) (*Items, error) {
	it := &Items{d: newItemDecoder(gvk, newItem, opts)}
	if !strings.HasPrefix(contentType, Protobuf) {
		it.dec = it.d.openJSON(body)
		return it, nil
	}
	var err error
	if it.list, err = openProtoList(body); err != nil {
		return nil, fmt.Errorf("decode list of %s: %w", gvk.Kind, err)
	}
	return it, nil
}

// Next is the next item, or io.EOF after the last one.
func (it *Items) Next() (runtime.Object, error) {
	if it.dec != nil {
		return it.nextJSON()
	}
	for {
		number, content, err := it.list.next()
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("decode list of %s: %w", it.d.gvk.Kind, err)
		}
		switch number {
		case fieldMetadata:
			if err := it.meta.Unmarshal(content); err != nil {
				return nil, fmt.Errorf("decode list of %s: %w", it.d.gvk.Kind, err)
			}
		case fieldItems:
			return it.d.fromMessage(content)
		}
	}
}

// Meta is the list's metadata; complete after Next has returned io.EOF.
func (it *Items) Meta() metav1.ListMeta { return it.meta }

func (it *Items) nextJSON() (runtime.Object, error) {
	obj, err := it.step()
	for obj == nil && err == nil {
		obj, err = it.step()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = it.d.explain(err)
	}
	if errors.Is(err, io.EOF) && it.state != afterList {
		err = io.ErrUnexpectedEOF
	}
	return obj, err
}

// step reads one token's worth: an item, or something else and nil.
func (it *Items) step() (runtime.Object, error) {
	switch it.state {
	case beforeList:
		tok, err := it.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if tok.Kind() != '{' {
			return nil, errors.New("a list is not a JSON object")
		}
		it.state = betweenKeys
	case betweenKeys:
		if it.dec.PeekKind() == '}' {
			_, err := it.dec.ReadToken()
			it.state = afterList
			return nil, err
		}
		return nil, it.member()
	case insideItems:
		if it.dec.PeekKind() != ']' {
			return it.d.fromJSON()
		}
		_, err := it.dec.ReadToken()
		it.state = betweenKeys
		return nil, err
	case afterList:
		return nil, io.EOF
	}
	return nil, nil
}

func (it *Items) member() error {
	name, err := it.d.u.name()
	if err != nil {
		return err
	}
	switch name {
	case "metadata":
		raw, err := it.dec.ReadValue()
		if err != nil {
			return err
		}
		return unmarshalJSON(bytes.Clone(raw), &it.meta)
	case "items":
		tok, err := it.dec.ReadToken()
		if err != nil {
			return err
		}
		switch tok.Kind() {
		case '[':
			it.state = insideItems
			return nil
		case 'n':
			return nil
		}
		return errors.New("the items of a list are not a JSON array")
	}
	return it.dec.SkipValue()
}
