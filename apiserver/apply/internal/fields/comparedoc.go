// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// CompareDocs is [Compare] for objects without a Go type.
//
//steer:fast comparison
func CompareDocs(n *Type, before, after *doc.Doc) (*Tree, bool) {
	t, last := newTree(8), int32(0)
	was, had := doc.Metadata(before)
	is, has := doc.Metadata(after)
	metadata := func() bool { // is called in its place
		switch {
		case !had && !has, had && has && wire.Equal(was, is):
			return true
		case !had:
			last = t.growField(0, last, "metadata")
			return t.compare(n.Field("metadata"), last, right, nil, is)
		case !has:
			last = t.growField(0, last, "metadata")
			return t.compare(n.Field("metadata"), last, left, was, nil)
		}
		last = t.growField(0, last, "metadata")
		return t.compare(n.Field("metadata"), last, both, was, is)
	}
	behind := false
	ok := doc.Each(before, after, func(name string, a, b doc.Value) bool {
		if name == "metadata" { // it is no object
			return false
		}
		if !behind && name > "metadata" {
			if behind = true; !metadata() {
				return false
			}
		}
		if a.Equal(b) {
			return true
		}
		if !typed.PlainText(name) {
			return false
		}
		last = t.growField(0, last, name)
		return t.compare(n.Field(name), last, sideOf(both, a.Exists(), b.Exists()), valueIn(a), valueIn(b))
	})
	return t, ok && (behind || metadata())
}

// valueIn returns a value as it is compared: text or, where it has none, decoded.
func valueIn(v doc.Value) any {
	if text, ok := v.Text(); ok {
		return text
	}
	return v.Decode()
}
