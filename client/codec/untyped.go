// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNames bounds the names an untyped decoder remembers.
const maxNames = 4096

// untyped decodes into maps, lists, strings, bools, int64 and float64. It lives
// as long as its stream, so that the names of fields, which repeat in every
// object, exist once.
type untyped struct {
	dec   *jsontext.Decoder
	names map[string]string
}

var errNotObject = errors.New("not a JSON object")

// object reads a whole object.
func (u *untyped) object() (map[string]any, error) {
	tok, err := u.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if tok.Kind() == 'n' {
		return nil, nil
	}
	if tok.Kind() != '{' {
		return nil, errNotObject
	}
	return u.members()
}

// members reads the rest of an object whose brace has been read.
func (u *untyped) members() (map[string]any, error) {
	m := map[string]any{}
	for {
		if u.dec.PeekKind() == '}' {
			_, err := u.dec.ReadToken()
			return m, err
		}
		name, err := u.name()
		if err != nil {
			return nil, err
		}
		if m[name], err = u.value(); err != nil {
			return nil, err
		}
	}
}

func (u *untyped) value() (any, error) {
	switch u.dec.PeekKind() {
	case '{', '[', 't', 'f', 'n':
		tok, err := u.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		switch tok.Kind() {
		case '{':
			return u.members()
		case '[':
			return u.elements()
		case 'n':
			return nil, nil
		}
		return tok.Bool(), nil
	case '"':
		raw, err := u.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		return unquote(raw), nil
	}
	raw, err := u.dec.ReadValue() // a number, or a mistake
	if err != nil {
		return nil, err
	}
	return number(raw)
}

func (u *untyped) elements() (any, error) {
	list := []any{}
	for {
		if u.dec.PeekKind() == ']' {
			_, err := u.dec.ReadToken()
			return list, err
		}
		v, err := u.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

// name reads a member's name; equal names share one string.
func (u *untyped) name() (string, error) {
	raw, err := u.dec.ReadValue()
	if err != nil {
		return "", err
	}
	if name, ok := u.names[string(raw)]; ok {
		return name, nil
	}
	name := unquote(raw)
	if u.names == nil {
		u.names = map[string]string{}
	}
	if len(u.names) < maxNames && len(raw) <= 64 {
		u.names[string(raw)] = name
	}
	return name, nil
}

// end makes sure that nothing follows.
func (u *untyped) end() error {
	switch _, err := u.dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("data after the JSON value")
}

func unquote(raw jsontext.Value) string {
	for _, c := range raw[1 : len(raw)-1] {
		if c == '\\' || c >= 0x80 {
			out, _ := jsontext.AppendUnquote(nil, raw)
			return string(out)
		}
	}
	return string(raw[1 : len(raw)-1])
}

func number(raw jsontext.Value) (any, error) {
	whole := true
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' {
			whole = false
			break
		}
	}
	if whole {
		if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil, fmt.Errorf("number %s does not fit", raw)
	}
	return f, nil
}
