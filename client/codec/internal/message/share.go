// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import "reflect"

const (
	// maxText is the longest string that is looked up, in bytes.
	maxText = 128
	// maxTexts is how many strings are remembered in a generation.
	maxTexts = 4096
	// maxPart is the longest encoding of a part that is shared, in bytes.
	maxPart = 4096
	// maxParts bounds what is remembered of parts in a generation, in bytes of their
	// encodings and partCost for each.
	maxParts = 1 << 20
	partCost = 64
)

// luck says whether it is worth looking up a field's values: those that differ in
// every object, like names and times, are left alone for a while.
type luck struct{ tried, hit, rest uint16 }

const (
	luckWindow = 64   // tries after which it is judged
	luckLeast  = 4    // hits among them that make it worth it
	luckRest   = 2048 // values that are left alone otherwise
)

func (l *luck) worth() bool {
	if l.rest > 0 {
		l.rest--
		return false
	}
	return true
}

func (l *luck) note(hit bool) {
	l.tried++
	if hit {
		l.hit++
	}
	if l.tried < luckWindow {
		return
	}
	if l.hit < luckLeast {
		l.rest = luckRest
	}
	l.tried, l.hit = 0, 0
}

// texts are strings that may come again, in two generations: what is not used
// while a generation fills is forgotten with the next.
type texts struct{ young, old map[string]string }

// text is the string of content.
func (d *Decoder) text(f *field, content []byte) string {
	if len(content) > maxText || !f.texts.worth() {
		return string(content)
	}
	if s, ok := d.texts.young[string(content)]; ok {
		f.texts.note(true)
		return s
	}
	s, ok := d.texts.old[string(content)]
	f.texts.note(ok)
	if !ok {
		s = string(content)
	}
	if len(d.texts.young) >= maxTexts || d.texts.young == nil {
		d.texts.old, d.texts.young = d.texts.young, map[string]string{}
	}
	d.texts.young[s] = s
	return s
}

// parts are parts of objects by how they are encoded, in two generations.
type parts struct {
	young, old map[partKey]part
	size       int // bytes of the young
}

type partKey struct {
	field   *field
	encoded string
}

type part struct {
	key   partKey
	value reflect.Value
}

// shares says that parts encoded so are looked up.
func (d *Decoder) shares(f *field, encoded []byte) bool {
	return d.opts.Share && len(encoded) <= maxPart && f.parts.worth()
}

func (p *parts) get(f *field, encoded []byte) (reflect.Value, bool) {
	found, ok := p.young[partKey{f, string(encoded)}]
	if !ok {
		if found, ok = p.old[partKey{f, string(encoded)}]; ok {
			p.add(found)
		}
	}
	f.parts.note(ok)
	return found.value, ok
}

// put remembers a part; value is its slice, map or pointer.
func (p *parts) put(f *field, encoded []byte, value reflect.Value) {
	p.add(part{partKey{f, string(encoded)}, value})
}

func (p *parts) add(found part) {
	if p.young == nil || p.size >= maxParts {
		p.old, p.young, p.size = p.young, map[partKey]part{}, 0
	}
	p.young[found.key] = found
	p.size += len(found.key.encoded) + partCost
}
